// Ids of orgs, projects, keys and the like as they are typed: checked here, as they come to stand
// in URLs.
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

/** Ids of the API have no others. */
const ID = /^[A-Za-z0-9_]{1,200}$/;

export function isResourceId(typed: string): boolean {
  return ID.test(typed);
}

/**
 * Throws a UsageError for what cannot be one. @param what of what kind it is, as `berth WHAT ls`
 * lists them
 */
export function checkResourceId(what: string, typed: string | undefined): string {
  if (typed !== undefined && isResourceId(typed)) return typed;
  throw new UsageError(
    `'${plainText(typed ?? '')}' is no id of ${/^[aeio]/.test(what) ? 'an' : 'a'} ${what}: letters, digits and underscores`,
    {
      remedy: `berth ${what} ls shows them`,
    },
  );
}
