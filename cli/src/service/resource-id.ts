// Validates typed ids before they go into URLs and command lines.
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

/** Characters of API ids. */
const ID = /^[A-Za-z0-9_]{1,200}$/;

export function isResourceId(typed: string): boolean {
  return ID.test(typed);
}

/** Throws a UsageError for an invalid id. @param what kind of resource */
export function checkResourceId(what: string, typed: string | undefined): string {
  const list = { invitation: 'org invitations', host: 'service hosts' }[what] ?? `${what} ls`;
  return checkId(typed, what, 'use only letters, digits and underscores', `berth ${list} lists them`);
}

export function agentSessionId(typed: string | undefined): string {
  if (typed?.startsWith('sbx_') === true && isResourceId(typed)) {
    throw new UsageError(`${typed} is a sandbox, not an agent session`, {
      remedy: `berth agent ls --sandbox ${typed} lists its sessions; berth agent start ${typed} starts one`,
    });
  }
  const example = 'ags_uodiunxlni4uyqmllemsqh4l';
  return checkId(typed, 'agent session', `example: ${example}`, 'berth agent ls lists them');
}

function checkId(typed: string | undefined, what: string, expected: string, remedy: string): string {
  if (typed !== undefined && isResourceId(typed)) return typed;
  throw new UsageError(`invalid ${what} id '${plainText(typed ?? '')}'; ${expected}`, { remedy });
}
