// Ids of sandboxes as they are typed: checked here, as they come to stand in URLs and command
// lines.
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

/** Ids of the API have no others. */
const SANDBOX_ID = /^[A-Za-z0-9_]{1,200}$/;

/** Throws a UsageError for what cannot be one. */
export function sandboxId(typed: string | undefined): string {
  if (typed !== undefined && SANDBOX_ID.test(typed)) return typed;
  throw new UsageError(
    `'${plainText(typed ?? '')}' is no id of a sandbox; one looks like sbx_uodiunxlni4uyqmllemsqh4l`,
    {
      remedy: 'berth sandbox ls shows them',
    },
  );
}
