// The two ends of a copy as they are typed: one is SANDBOX:path, the other a path of this machine.
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

/** A path in a sandbox. */
export interface PathThere {
  sandbox: string;
  path: string;
}

/** Into a sandbox, or out of it. */
type Ends = { into: PathThere; from: string } | { into: null; from: PathThere; to: string };

/** Ids of sandboxes alone, so that a file here may have a colon in its name. */
const REMOTE = /^(sbx_[A-Za-z0-9_]{1,196}):(.*)$/s;

/** Throws a UsageError for ends between which nothing is copied. */
export function endpoints(from: string, to: string): Ends {
  const [source, target] = [endpoint(from), endpoint(to)];
  if (source.sandbox !== null && target.sandbox !== null) {
    throw new UsageError('nothing is copied from sandbox to sandbox: one of the two must be a path of this machine', {
      remedy: `berth exec -i ${source.sandbox} -- tar c PATH | berth exec -i ${target.sandbox} -- tar x does it by way of this one`,
    });
  }
  if (source.sandbox !== null) return { into: null, from: source, to: target.path };
  if (target.sandbox !== null) return { into: target, from: source.path };
  throw new UsageError(`neither '${plainText(from)}' nor '${plainText(to)}' is in a sandbox`, {
    remedy: 'as in: berth cp sbx_uodiunxlni4uyqmllemsqh4l:/code/result.txt .',
  });
}

function endpoint(typed: string): PathThere | { sandbox: null; path: string } {
  const [, sandbox, path = ''] = REMOTE.exec(typed) ?? [];
  if (sandbox === undefined) {
    if (typed === '-') {
      throw new UsageError('- is no end of a copy', {
        remedy: 'berth exec -i SANDBOX -- cat FILE, or tar, streams by stdin and stdout',
      });
    }

    if (typed === '' || typed.includes('\0')) throw new UsageError('a path must not be empty');
    return { sandbox: null, path: typed };
  }
  if (path === '' || path.includes('\0'))
    throw new UsageError(`${sandbox}: needs a path behind it; ${sandbox}:. is /code`);
  return { sandbox, path };
}

/**
 * What the source is called where it is copied into a folder; empty when its content is meant: of
 * `folder/.`, `.`, `/` and what ends in `..`.
 */
export function nameOf(path: string): string {
  const last = path.split('/').findLast((part) => part !== '') ?? '';
  return last === '.' || last === '..' ? '' : last;
}
