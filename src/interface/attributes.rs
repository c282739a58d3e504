//! Attributes and limits of a process.

/// The type of thread ids in records (CUPTI: `CUpti_ActivityThreadIdType`).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum ThreadIds {
    /// The kernel's id, gettid(2). Unlike CUPTI's default it is unique among live threads only.
    #[default]
    System = 1,
    /// The low half of pthread_self(3) (CUPTI's default).
    Pthread = 0,
}

/// The limits of a process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Buffers.
    pub buffers: usize,
    /// Subscribers.
    pub subscribers: usize,
    /// Contexts.
    pub contexts: usize,
    /// Callback threads.
    pub callback_threads: usize,
    /// The smallest block that a client may supply, in bytes.
    pub smallest_client_block: usize,
}
