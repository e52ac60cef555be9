// Ids of resources as they are typed: checked here, because they are put into URLs and command
// lines.
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

/** Ids of the API contain no other characters. */
const ID = /^[A-Za-z0-9_]{1,200}$/;

export function isResourceId(typed: string): boolean {
  return ID.test(typed);
}

/**
 * Throws a UsageError for what cannot be an id.
 *
 * @param what The kind of resource, as in `berth WHAT ls`
 */
export function checkResourceId(what: string, typed: string | undefined): string {
  const article = /^[aeio]/.test(what) ? 'an' : 'a';
  return checkId(typed, `no id of ${article} ${what}: letters, digits and underscores`, `berth ${what} ls shows them`);
}

/** Throws a UsageError for what cannot be the id of a sandbox. */
export function sandboxId(typed: string | undefined): string {
  const example = 'sbx_uodiunxlni4uyqmllemsqh4l';
  return checkId(typed, `no id of a sandbox; one looks like ${example}`, 'berth sandbox ls shows them');
}

function checkId(typed: string | undefined, fault: string, remedy: string): string {
  if (typed !== undefined && isResourceId(typed)) return typed;
  throw new UsageError(`'${plainText(typed ?? '')}' is ${fault}`, { remedy });
}
