"""Fast paths and measurements that need private names of torch, which are used in no other folder."""
