// Maps git's last output to a failure code. Pure. Git runs without a locale, so in English.
import type { CloneFailureCode } from '@berth/protocol/calls/clones.ts';
import { CLONE_MESSAGE_LENGTH } from '@berth/protocol/guest-limits.ts';

/** The first match decides. Disk errors have many symptoms; network errors vary most. */
const MEANINGS: readonly [RegExp, CloneFailureCode][] = [
  [/No space left on device|Disk quota exceeded/i, 'disk_full'],
  [/Remote branch .* not found in upstream/i, 'branch_not_found'],
  [/Authentication failed|could not read (Username|Password)|Access denied|returned error: 40[13]/i, 'access_denied'],
  [/repository '.*' not found|returned error: 404|not valid: is this a git repository/i, 'repository_not_found'],
  [
    /Could not resolve|Failed to connect|Couldn't connect|Connection (refused|reset|timed out|was reset)|Network is unreachable|No route to host|timed out|too slow|Empty reply from server|SSL|certificate|TLS|early EOF|unexpected disconnect|hung up|Recv failure|Send failure|RPC failed|returned error: (429|5\d\d)|transport '.*' not allowed|redirect/i,
    'network',
  ],
];

/** Progress lines, and lines that the server sends for people to read. */
const PROGRESS_LINE = /^(Cloning into |remote: |warning: redirecting |\s*$)/;
const TOLD_LINES = 3;

/**
 * Returns the code for git's stderr, and the last relevant lines, as many as fit into a message. A
 * line is never cut: the control plane could not find the rest of a secret in it.
 */
export function readFailure(stderr: string): { code: CloneFailureCode; words: string } {
  const lines = stderr.split('\n').filter((line) => !PROGRESS_LINE.test(line));
  // The server controls its own lines; only git's lines count.
  const own = lines.join('\n');
  const code = MEANINGS.find(([pattern]) => pattern.test(own))?.[1] ?? 'failed';
  const told = lines.slice(-TOLD_LINES);
  while (told.join('; ').length > CLONE_MESSAGE_LENGTH) told.shift();
  return { code, words: told.join('; ') };
}
