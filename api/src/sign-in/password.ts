// Passwords: requirements, and the library's slow, memory-hard hash (scrypt).
import { PASSWORD_CHARACTERS } from '@berth/contract/route/limits.ts';
import { hashPassword, verifyPassword } from 'better-auth/crypto';
import { SignInError } from '../services/people/sign-in-port.ts';

/**
 * Twice the limit in characters, because JavaScript counts UTF-16 units. Longer text is not hashed.
 */
const LONGEST_HASHED = 2 * PASSWORD_CHARACTERS.max;

/** Hash of a new password. Throws `password_unfit`. */
export async function fitPasswordHash(password: string): Promise<string> {
  const { min, max } = PASSWORD_CHARACTERS;
  const { length } = Array.from(password);
  if (length < min || length > max)
    throw new SignInError('password_unfit', `the password must be ${min} to ${max} characters long, not ${length}`);

  return await hashPassword(password);
}

/** True if the password matches the hash. */
export async function isPasswordOf(hash: string, password: string): Promise<boolean> {
  const right = await verifyPassword({ hash, password: password.slice(0, LONGEST_HASHED) });
  return right && password.length <= LONGEST_HASHED;
}

/**
 * Takes as long as {@link isPasswordOf} where there is no hash, so that timing does not disclose
 * whether an account exists.
 */
export async function spendTimeOnPassword(password: string): Promise<void> {
  await hashPassword(password.slice(0, LONGEST_HASHED));
}
