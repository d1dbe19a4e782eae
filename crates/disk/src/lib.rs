//! The live emulated block device: a FUSE file, served at the pace of a model from `tierwise-device`.
