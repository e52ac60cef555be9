// Fields whose feature this version does not have are refused by name: an ignored field would be a broken promise.
import { CodedError } from './coded-error.ts';

/** Throws `not_available_yet` naming the fields of the list that carry a value. null means "none", which is what there is. */
export function refuseFieldsNotAvailable<B extends object>(body: B, fields: readonly (keyof B & string)[]): void {
  const given = fields.filter((field) => body[field] !== undefined && body[field] !== null);
  if (given.length === 0) return;
  throw new CodedError(
    'not_available_yet',
    `${given.map((field) => `body.${field}`).join(', ')}: not available yet in this version; leave it out`,
  );
}
