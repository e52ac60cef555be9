// Parses the two paths of a copy: one is SANDBOX:PATH, the other local.
import { quoted } from '../commands/command-text.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

export interface PathThere {
  sandbox: string;
  path: string;
}

type Ends = { into: PathThere; from: string } | { into: null; from: PathThere; to: string };

/** With an id or the start of one. Takes precedence, so that a local name may contain a colon. */
const BY_ID = /^(sbx_[a-z2-7]+):(.*)$/s;
/** With a name, as in scp(1): a colon before any slash. */
const BY_NAME = /^([^:/]+):(.*)$/s;

/** Throws a UsageError unless exactly one path is in a sandbox. */
export function endpoints(from: string, to: string): Ends {
  const byId = [from, to].some((typed) => BY_ID.test(typed));
  const [source, target] = [from, to].map((typed) => endpoint(typed, byId ? BY_ID : BY_NAME)) as [Endpoint, Endpoint];
  if (source.sandbox !== null && target.sandbox !== null) {
    const [one, other] = [source, target].map(({ sandbox }) => quoted(plainText(sandbox ?? '')));
    throw new UsageError('cannot copy from sandbox to sandbox: one of the paths must be local', {
      remedy:
        `use berth exec -i ${one} -- tar c PATH | berth exec -i ${other} -- tar x; ` +
        'a local path with a colon begins with ./',
    });
  }
  if (source.sandbox !== null) return { into: null, from: source, to: target.path };
  if (target.sandbox !== null) return { into: target, from: source.path };
  throw new UsageError(`neither '${plainText(from)}' nor '${plainText(to)}' is a path in a sandbox`, {
    remedy: 'example: berth cp sbx_uodiunxlni4uyqmllemsqh4l:/code/result.txt .',
  });
}

type Endpoint = PathThere | { sandbox: null; path: string };

function endpoint(typed: string, remote: RegExp): Endpoint {
  const [, sandbox, path = ''] = remote.exec(typed) ?? [];
  if (sandbox === undefined) {
    if (typed === '-') {
      throw new UsageError("cannot copy from or to '-'", {
        remedy: 'to stream, use berth exec -i SANDBOX -- cat FILE, or tar',
      });
    }

    if (typed === '' || typed.includes('\0')) throw new UsageError('a path must not be empty');
    return { sandbox: null, path: typed };
  }
  const shown = plainText(sandbox);
  if (path === '' || path.includes('\0')) throw new UsageError(`missing path after ${shown}: (${shown}:. is /code)`);
  return { sandbox, path };
}

/**
 * Name of the copy inside an existing folder. Empty for `folder/.`, `.`, `/` and paths ending in
 * `..`: only their contents are copied.
 */
export function nameOf(path: string): string {
  const last = path.split('/').findLast((part) => part !== '') ?? '';
  return last === '.' || last === '..' ? '' : last;
}
