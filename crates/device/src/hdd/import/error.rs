//! What is wrong with input that cannot be imported.

/// Which of the two files an error is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportFile {
    /// The JSON with geometry, mechanics, cache and overheads.
    Geometry,
    /// The table of seek times.
    Seek,
}

/// Input that cannot be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ImportError {
    /// The file with the fault.
    pub file: ImportFile,
    /// The line or field, and what is wrong with it.
    pub problem: String,
}

impl ImportError {
    pub(super) fn geometry(problem: impl Into<String>) -> Self {
        Self {
            file: ImportFile::Geometry,
            problem: problem.into(),
        }
    }

    pub(super) fn seek(problem: impl Into<String>) -> Self {
        Self {
            file: ImportFile::Seek,
            problem: problem.into(),
        }
    }
}
