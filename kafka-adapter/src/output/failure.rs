//! What can go wrong between the producer and the brokers, and what is to be done about it.
//!
//! Pure. Not here: records that are refused for good (`refusal`).

use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) text: String,
    /// The producer is of no use any more.
    pub(super) is_fatal: bool,
    /// The same call is to be made again.
    pub(super) is_retriable: bool,
    /// The transaction is lost.
    pub(super) needs_abort: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The same call again.
    Repeat,
    /// Abort, and write the transaction again.
    Abort,
    /// The group does not know the reader as it did: abort, and write again if it still is a member.
    AskMember,
    /// Somebody else is this member of the group.
    GiveUpMember,
    /// Make the producer anew, and see what is there.
    Renew,
    /// Somebody else writes with the same transactional id, or the brokers have given this transaction up.
    Fenced,
    /// Rights are missing.
    Forbidden,
}

impl Failure {
    /// The transaction is lost for a reason of ours.
    pub(super) fn abort(code: Code, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { code, text, is_fatal: false, is_retriable: false, needs_abort: true }
    }

    /// The producer is lost.
    pub(super) fn fatal(code: Code, text: impl Into<String>) -> Self {
        Self { is_fatal: true, needs_abort: false, ..Self::abort(code, text) }
    }

    pub(super) fn remedy(&self) -> Remedy {
        match self.code {
            Code::Fenced | Code::ProducerFenced => Remedy::Fenced,
            Code::InvalidProducerEpoch if self.is_fatal => Remedy::Fenced,
            Code::FencedInstanceId => Remedy::GiveUpMember,
            Code::IllegalGeneration
            | Code::UnknownMemberId
            | Code::RebalanceInProgress
            | Code::FencedMemberEpoch
            | Code::StaleMemberEpoch => Remedy::AskMember,
            Code::TopicAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed => Remedy::Forbidden,
            _ if self.is_fatal => Remedy::Renew,
            _ if self.is_retriable && !self.needs_abort => Remedy::Repeat,
            _ => Remedy::Abort,
        }
    }
}

impl From<KafkaError> for Failure {
    fn from(error: KafkaError) -> Self {
        match error {
            KafkaError::Transaction(error) => Self {
                code: error.code(),
                text: error.string(),
                is_fatal: error.is_fatal(),
                is_retriable: error.is_retriable(),
                needs_abort: error.txn_requires_abort(),
            },
            // Not the call itself failed, but waiting for it took too long.
            KafkaError::Flush(code) => Self {
                is_retriable: true,
                needs_abort: false,
                ..Self::abort(code, code.to_string())
            },
            other => {
                let code = other.rdkafka_error_code().unwrap_or(Code::Unknown);
                Self::abort(code, other.to_string())
            }
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.text, self.code)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_remedy() {
        let retriable = |code| Failure {
            is_retriable: true,
            needs_abort: false,
            ..Failure::abort(code, "later")
        };
        let check = |failure: Failure, remedy| assert_eq!(failure.remedy(), remedy, "{failure}");
        check(retriable(Code::OperationTimedOut), Remedy::Repeat);
        check(Failure { needs_abort: true, ..retriable(Code::NotCoordinator) }, Remedy::Abort);
        check(Failure::abort(Code::MessageTimedOut, ""), Remedy::Abort);
        check(Failure::abort(Code::InvalidProducerEpoch, ""), Remedy::Abort);
        check(Failure::fatal(Code::InvalidProducerEpoch, ""), Remedy::Fenced);
        check(Failure::fatal(Code::Fenced, ""), Remedy::Fenced);
        check(Failure::fatal(Code::UnknownProducerId, ""), Remedy::Renew);
        check(Failure::abort(Code::IllegalGeneration, ""), Remedy::AskMember);
        check(Failure::fatal(Code::FencedInstanceId, ""), Remedy::GiveUpMember);
        check(Failure::fatal(Code::TransactionalIdAuthorizationFailed, ""), Remedy::Forbidden);
    }
}
