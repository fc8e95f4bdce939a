//! What a request says under a name that may come several times.

/// What a request says under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing.
    Absent,
    /// This, which is not empty.
    Value(Vec<u8>),
    /// Several things: upstream may read another one than we would.
    Ambiguous,
}

impl Told {
    /// Of several values: the one that all of them are, an empty one among others being another one.
    pub(super) fn of(mut values: impl Iterator<Item = Vec<u8>>) -> Self {
        let Some(first) = values.next() else { return Self::Absent };
        if values.any(|value| value != first) {
            Self::Ambiguous
        } else if first.is_empty() {
            Self::Absent
        } else {
            Self::Value(first)
        }
    }

    /// What is said, where it is one thing.
    pub(super) fn value(self) -> Option<Vec<u8>> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Ambiguous => None,
        }
    }
}
