// Parses the two paths of a copy: one is SANDBOX:PATH, the other local.
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

export interface PathThere {
  sandbox: string;
  path: string;
}

type Ends = { into: PathThere; from: string } | { into: null; from: PathThere; to: string };

/** Only sandbox ids, so that local names may contain a colon. */
const REMOTE = /^(sbx_[A-Za-z0-9_]{1,196}):(.*)$/s;

/** Throws a UsageError unless exactly one path is in a sandbox. */
export function endpoints(from: string, to: string): Ends {
  const [source, target] = [endpoint(from), endpoint(to)];
  if (source.sandbox !== null && target.sandbox !== null) {
    throw new UsageError('cannot copy from sandbox to sandbox: one of the paths must be local', {
      remedy: `use berth exec -i ${source.sandbox} -- tar c PATH | berth exec -i ${target.sandbox} -- tar x`,
    });
  }
  if (source.sandbox !== null) return { into: null, from: source, to: target.path };
  if (target.sandbox !== null) return { into: target, from: source.path };
  throw new UsageError(`neither '${plainText(from)}' nor '${plainText(to)}' is a path in a sandbox`, {
    remedy: 'example: berth cp sbx_uodiunxlni4uyqmllemsqh4l:/code/result.txt .',
  });
}

function endpoint(typed: string): PathThere | { sandbox: null; path: string } {
  const [, sandbox, path = ''] = REMOTE.exec(typed) ?? [];
  if (sandbox === undefined) {
    if (typed === '-') {
      throw new UsageError("cannot copy from or to '-'", {
        remedy: 'to stream, use berth exec -i SANDBOX -- cat FILE, or tar',
      });
    }

    if (typed === '' || typed.includes('\0')) throw new UsageError('a path must not be empty');
    return { sandbox: null, path: typed };
  }
  if (path === '' || path.includes('\0'))
    throw new UsageError(`missing path after ${sandbox}: (${sandbox}:. is /code)`);
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
