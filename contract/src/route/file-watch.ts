// Limits of watches of folders. Imports nothing: the guest daemon bundles this file.

/**
 * `perSandbox`: folders that a sandbox watches at once. `folders`: watched below one of them,
 * itself included. `unusedSeconds`: without a request, after which a watch ends. `changes` and
 * `textBytes` (UTF-8, of paths): kept of a watch, and, in a response, the number and the length of
 * paths at which it ends.
 */
export const FILE_WATCH_LIMITS = {
  perSandbox: 8,
  folders: 4_096,
  unusedSeconds: 300,
  kept: { changes: 4_096, textBytes: 1_048_576 },
  response: { changes: 1_000, textBytes: 131_072 },
} as const;

/** A place in the changes of a watch: its id, and the number of a change. */
export const FILE_WATCH_CURSOR = /^[0-9a-f]{16}\.(?:0|[1-9][0-9]{0,14})$/;

/**
 * `created`: created, moved here, or put in the place of what was there. `changed`: content, mode,
 * owner or time. `removed`: removed or moved away, a folder with all below it.
 */
export const FILE_CHANGES = ['created', 'changed', 'removed'] as const;
export const FILE_KINDS = ['directory', 'file', 'link', 'other'] as const;
