//! A batch of one message.

pub(crate) struct Sealed {
    pub(crate) header: Header,
}

pub(crate) struct Header {
    pub(crate) message: u8,
}

impl Header {
    /// Returns the number of bytes that it takes.
    pub(crate) fn extent(&self) -> u64 {
        1
    }
}

impl Sealed {
    pub(crate) fn of(message: u8) -> Self {
        Sealed { header: Header { message } }
    }
}
