// Passwords: what one must be like, and the library's slow, memory-hard hash of it (scrypt).
import { PASSWORD_CHARACTERS } from '@berth/contract/route/limits.ts';
import { hashPassword, verifyPassword } from 'better-auth/crypto';
import { SignInError } from '../services/people/sign-in-port.ts';

/**
 * Twice as long in JavaScript's units as the longest password in characters; more is not worth the
 * hashing.
 */
const LONGEST_HASHED = 2 * PASSWORD_CHARACTERS.max;

/** The hash of a new password. Throws `password_unfit`. */
export async function fitPasswordHash(password: string): Promise<string> {
  const { min, max } = PASSWORD_CHARACTERS;
  const { length } = Array.from(password);
  if (length < min || length > max) {
    throw new SignInError(
      'password_unfit',
      `the password must be ${min} to ${max} characters long; this one has ${length}`,
    );
  }

  return await hashPassword(password);
}

/** Whether it is the password that was hashed. */
export async function isPasswordOf(hash: string, password: string): Promise<boolean> {
  const right = await verifyPassword({ hash, password: password.slice(0, LONGEST_HASHED) });
  return right && password.length <= LONGEST_HASHED;
}

/**
 * Takes as long as {@link isPasswordOf} where there is no hash, so that the time does not tell
 * whether there is an account.
 */
export async function spendTimeOnPassword(password: string): Promise<void> {
  await hashPassword(password.slice(0, LONGEST_HASHED));
}
