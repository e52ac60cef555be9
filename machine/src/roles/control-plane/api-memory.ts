// Memory of the API's process. After many large bodies Node's heap and glibc's keep most of their
// peak: glibc returns free memory at the end of its heap alone, and V8 keeps its young generation.
// Figures: docs/decisions/api-memory.md.

/** Flags of Node: a young generation of at most three times 8 MiB. */
export const API_NODE_FLAGS: readonly string[] = ['--max-semi-space-size=8'];

/** Replaces glibc's allocator by jemalloc, which returns pages that are free for ten seconds. */
export const API_ALLOCATOR: Readonly<Record<string, string>> = {
  LD_PRELOAD: 'libjemalloc.so.2',
  MALLOC_CONF: 'narenas:2,background_thread:true,dirty_decay_ms:10000,muzzy_decay_ms:0',
};
