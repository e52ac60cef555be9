// Memory of the API's process. After many large bodies Node's heap and glibc's keep most of their
// peak: glibc returns free memory at the end of its heap alone, and V8 keeps its young generation.
// Figures: docs/decisions/api-memory.md.

/** Flags of Node: half the default young generation, and a collection after a growth of half. */
export const API_NODE_FLAGS: readonly string[] = ['--max-semi-space-size=8', '--heap-growing-percent=50'];

/** Replaces glibc's allocator by jemalloc, which returns free pages after a second. */
export const API_ALLOCATOR: Readonly<Record<string, string>> = {
  LD_PRELOAD: 'libjemalloc.so.2',
  MALLOC_CONF: 'background_thread:true,dirty_decay_ms:1000,muzzy_decay_ms:0',
};
