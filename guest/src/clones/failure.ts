// What git's last words mean. Pure. They are in English: git is run without a language of its own.
import type { CloneFailureCode } from '@berth/protocol/calls/clones.ts';

/**
 * The first that fits decides. A full disk shows in many ways, so it comes first; what git says of
 * the network is the most various and comes last.
 */
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

/** Lines that say what git is about to do, and what the server wants people to read. */
const CHATTER = /^(Cloning into |remote: |warning: redirecting |\s*$)/;
const TOLD_LINES = 3;

/** The code for what git said on stderr, and its last words that matter. */
export function readFailure(stderr: string): { code: CloneFailureCode; words: string } {
  const lines = stderr.split('\n').filter((line) => !CHATTER.test(line));
  // A server can say what it likes in its own lines; git's own are what counts.
  const own = lines.join('\n');
  const code = MEANINGS.find(([pattern]) => pattern.test(own))?.[1] ?? 'failed';
  return { code, words: lines.slice(-TOLD_LINES).join('; ') };
}
