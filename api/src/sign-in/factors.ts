// The second factor of an account: an authenticator app and its recovery codes. An enrolment and a
// sign-in that waits for its code are sealed values in the browser; rows exist only once confirmed.
import { createHash } from 'node:crypto';
import { addressKey, userKey } from '../rules/access/throttle.ts';
import { openText, sealText } from '../services/context/sealed.ts';
import type { DerivedKeys, SecretKey } from '../services/context/secret-key.ts';
import type { CodeUse, SecondFactor, TotpEnrolment, TotpState } from '../services/people/factors-port.ts';
import { SignInError, type Caller, type SignIn } from '../services/people/sign-in-port.ts';
import type { Database } from '../store/database/schema.ts';
import {
  deleteTotp,
  findTotp,
  insertTotp,
  putRecoveryCodes,
  useRecoveryCode,
  useStep,
} from '../store/people/factors.ts';
import { openPending, sealPending } from './pending.ts';
import { newRecoveryCodes, newSecret, recoveryCodeHash, stepOfCode, totpUri } from './totp.ts';

interface FactorParts {
  db: Database;
  secretKey: SecretKey;
  settings: { publicUrl: string };
  throttle: SignIn['throttle'];
}

export class Factors implements SecondFactor {
  readonly #parts: FactorParts;

  constructor(parts: FactorParts) {
    this.#parts = parts;
  }

  get #keys(): DerivedKeys {
    return this.#parts.secretKey.keysFor('factors');
  }

  async totpState(userId: string): Promise<TotpState | null> {
    const row = await findTotp(this.#parts.db, userId);
    return row === undefined ? null : { since: row.since, recoveryCodesLeft: row.recoveryCodesLeft };
  }

  beginTotp({ userId, email }: { userId: string; email: string }): TotpEnrolment {
    return this.#enrolment(userId, email, newSecret());
  }

  /** The same enrolment, to be shown again. Throws `link_invalid`. */
  readTotp({ userId, email }: { userId: string; email: string }, sealed: string): TotpEnrolment {
    return { ...this.#enrolment(userId, email, this.#open('enrolment', userId, sealed)), sealed };
  }

  async enableTotp(
    userId: string,
    { sealed, code }: { sealed: string; code: string },
    caller: Caller,
  ): Promise<string[]> {
    const secret = this.#open('enrolment', userId, sealed);
    await this.#parts.throttle('second-factor', [addressKey(caller.address), userKey(userId)]);
    const step = stepOfCode(secret, code);
    if (step === null) throw wrongCode();
    const codes = newRecoveryCodes();
    await this.#parts.db.transaction().execute(async (trx) => {
      const secretSealed = sealText(this.#keys, userId, secret);
      if (!(await insertTotp(trx, { userId, secretSealed, step })))
        throw new SignInError('factor_conflict', 'this account has an authenticator app already; remove it first');
      await putRecoveryCodes(trx, userId, hashesOf(codes));
    });
    return codes;
  }

  async disableTotp(userId: string): Promise<boolean> {
    return await deleteTotp(this.#parts.db, userId);
  }

  async replaceRecoveryCodes(userId: string): Promise<string[]> {
    const codes = newRecoveryCodes();
    await this.#parts.db.transaction().execute(async (trx) => {
      if ((await findTotp(trx, userId)) === undefined)
        throw new SignInError('factor_conflict', 'this account has no authenticator app');
      await putRecoveryCodes(trx, userId, hashesOf(codes));
    });
    return codes;
  }

  /**
   * Uses a code of the app or a recovery code, which no other call can use. The caller counts the
   * attempt before.
   */
  async useCode(userId: string, code: string): Promise<CodeUse> {
    const { db } = this.#parts;
    const row = await findTotp(db, userId);
    if (row === undefined) throw wrongCode();
    const hash = recoveryCodeHash(code);
    if (hash !== null) {
      if (!(await useRecoveryCode(db, userId, hash))) throw wrongCode();
      return { kind: 'recovery', left: row.recoveryCodesLeft - 1 };
    }
    const step = stepOfCode(openText(this.#keys, userId, row.secretSealed), code);
    if (step === null || !(await useStep(db, userId, step))) throw wrongCode();
    return { kind: 'totp' };
  }

  /** A sign-in whose password was right, for the browser to keep until the code is entered. */
  sealSignIn(userId: string, passwordHash: string): string {
    return this.#seal('sign-in', '', JSON.stringify({ userId, password: digestOf(passwordHash) }));
  }

  /** Throws `link_invalid`. */
  openSignIn(sealed: string): { userId: string; isPassword: (passwordHash: string) => boolean } {
    const { userId, password } = JSON.parse(this.#open('sign-in', '', sealed)) as Record<'userId' | 'password', string>;
    return { userId, isPassword: (hash) => digestOf(hash) === password };
  }

  #enrolment(userId: string, email: string, secret: string): TotpEnrolment {
    const uri = totpUri(secret, new URL(this.#parts.settings.publicUrl).host, email);
    return { secret, uri, sealed: this.#seal('enrolment', userId, secret) };
  }

  #seal(purpose: string, owner: string, text: string): string {
    return sealPending(this.#keys, `${purpose} ${owner}`, text);
  }

  #open(purpose: string, owner: string, sealed: string): string {
    return openPending(this.#keys, `${purpose} ${owner}`, sealed);
  }
}

function wrongCode(): SignInError {
  return new SignInError('wrong_code', 'the code is wrong, or was used before; wait for the next one');
}

/** The digest of a password's hash: tells whether the password was changed since. */
function digestOf(passwordHash: string): string {
  return createHash('sha256').update(passwordHash).digest('base64url');
}

function hashesOf(codes: readonly string[]): Buffer[] {
  return codes.flatMap((code) => recoveryCodeHash(code) ?? []);
}
