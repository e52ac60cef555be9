// Cursors of replies and turns of an agent session: a number that the guest never gives twice.
import { invalidField } from '../coded-error.ts';

type Numbered = 'output' | 'turns';

const FORM = /^(output|turns)\.(ags_[a-z2-7]+)\.(\d{1,16})$/;

export function writeReplyCursor(list: Numbered, sessionId: string, number: number): string {
  return Buffer.from(`${list}.${sessionId}.${number}`).toString('base64url');
}

/** The number; 0 without a cursor. Throws `invalid_request` for a cursor of another list. */
export function readReplyCursor(list: Numbered, sessionId: string, cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const parts = FORM.exec(Buffer.from(cursor, 'base64url').toString());
  const number = Number(parts?.[3]);
  if (Number.isSafeInteger(number) && writeReplyCursor(list, sessionId, number) === cursor) return number;
  throw invalidField('query.after', 'must be the nextCursor of an earlier page of this list');
}
