//! The image that `docs/deploy/Dockerfile` describes is built with the packages that `.ci/run` installs.

use std::collections::BTreeSet;

use super::Finding;
use super::repository::Repository;

const CI: &str = ".ci/run";
const IMAGE: &str = "docs/deploy/Dockerfile";

/// Packages that only tests and a bare machine want: an image of Rust has cargo, and builds from a copy.
fn is_for_building(package: &str) -> bool {
    let others = ["chromium", "chromium-driver", "git", "maven", "rustup"];
    !package.starts_with("openjdk-") && !others.contains(&package)
}

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let (Some(ci), Some(image)) = (repository.text(CI), repository.text(IMAGE)) else {
        return vec![Finding::broken(format!("{CI} or {IMAGE} is missing"))];
    };
    let (in_ci, in_image) = (packages_of_ci(ci), packages_of_first_stage(image));
    if in_ci.is_empty() {
        return vec![Finding::broken(format!("{CI} names no package in `missing+=(...)`"))];
    }
    let lacks = in_ci.difference(&in_image).map(|package| {
        Finding::broken(format!("{IMAGE} is built without {package}, which {CI} installs"))
    });
    let more = in_image.difference(&in_ci).map(|package| {
        Finding::broken(format!("{IMAGE} is built with {package}, which {CI} does not install"))
    });
    lacks.chain(more).collect()
}

/// What stands in `missing+=(...)`.
fn packages_of_ci(text: &str) -> BTreeSet<&str> {
    let lists = text.split("missing+=(").skip(1).filter_map(|rest| rest.split(')').next());
    lists.flat_map(str::split_whitespace).filter(|package| is_for_building(package)).collect()
}

/// What the first stage installs: the words after the options of `apt-get install`, up to the next command.
fn packages_of_first_stage(text: &str) -> BTreeSet<&str> {
    let stage = text.split("\nFROM ").find(|stage| stage.contains("apt-get install"));
    let stage = stage.unwrap_or_default();
    let installed = stage.split_once("apt-get install").map(|(_, rest)| rest).unwrap_or_default();
    let words = installed.split_whitespace().take_while(|word| *word != "&&");
    words.filter(|word| !word.starts_with('-') && *word != "\\").collect()
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::*;

    const CI_TEXT: &str = "can || missing+=(gcc libc6-dev)\ncommand || missing+=(make)\n\
                           missing+=(openjdk-17-jre-headless)\nmissing+=(git)\n";

    fn with(packages: &str) -> Vec<Finding> {
        let image = format!(
            "# An image.\nFROM rust AS build\nRUN apt-get update \\\n && apt-get install --yes \\\n    \
             {packages} \\\n && rm -rf lists\n\nFROM debian\nRUN apt-get install libssl3\n"
        );
        check(&Repository::sketch(&[(CI, CI_TEXT), (IMAGE, &image)]))
    }

    #[test]
    fn the_same_packages_are_fine() {
        expect_broken(&with("make gcc libc6-dev"), &[]);
    }

    #[test]
    fn a_package_too_few_or_too_many_is_named() {
        expect_broken(&with("gcc libc6-dev"), &["without make"]);
        expect_broken(&with("gcc libc6-dev make cmake"), &["with cmake"]);
        expect_broken(&with(""), &["without gcc", "without libc6-dev", "without make"]);
    }

    #[test]
    fn a_missing_file_is_broken() {
        expect_broken(&check(&Repository::sketch(&[(CI, CI_TEXT)])), &["missing"]);
        expect_broken(&check(&Repository::sketch(&[(CI, ""), (IMAGE, "")])), &["names no package"]);
    }
}
