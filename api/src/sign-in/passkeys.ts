// Passkeys (WebAuthn): registration and use. A challenge is sealed for one browser in its page; the
// page's script passes it to the authenticator, which signs it with the page's origin.
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
  type AuthenticationResponseJSON,
  type RegistrationResponseJSON,
} from '@simplewebauthn/server';
import { PASSKEYS_PER_USER } from '@berth/contract/route/limits.ts';
import type { Logger } from 'pino';
import { addressKey } from '../rules/access/throttle.ts';
import type { DerivedKeys, SecretKey } from '../services/context/secret-key.ts';
import type { Passkey, PasskeyCeremony, PasskeySet, SentCredential } from '../services/people/passkeys-port.ts';
import { SignInError, type Caller, type SignIn } from '../services/people/sign-in-port.ts';
import { lockUser } from '../store/people/accounts.ts';
import type { Database } from '../store/database/schema.ts';
import {
  deletePasskey,
  findPasskey,
  insertPasskey,
  listPasskeys,
  renamePasskey,
  spendChallenge,
  usePasskey,
} from '../store/people/passkeys.ts';
import { openPending, PENDING_MINUTES, sealPending } from './pending.ts';

/** In base64url. */
const ID_FORM = /^[\w-]{1,1400}$/;
/** EdDSA, ES256, RS256. */
const ALGORITHMS = [-8, -7, -257];
const TIMEOUT_MS = PENDING_MINUTES * 60_000;

interface PasskeyParts {
  db: Database;
  secretKey: SecretKey;
  settings: { publicUrl: string };
  throttle: SignIn['throttle'];
  log: Logger;
}

export class Passkeys implements PasskeySet {
  readonly #parts: PasskeyParts;
  readonly #rpId: string;
  readonly possible: boolean;

  constructor(parts: PasskeyParts) {
    this.#parts = parts;
    const { protocol, hostname } = new URL(parts.settings.publicUrl);
    this.#rpId = hostname;
    // Browsers offer passkeys to secure pages of named hosts.
    const isNamed = isIP(hostname.replace(/^\[|\]$/g, '')) === 0;
    this.possible = isNamed && (protocol === 'https:' || hostname === 'localhost');
  }

  get #keys(): DerivedKeys {
    return this.#parts.secretKey.keysFor('factors');
  }

  async list(userId: string): Promise<Passkey[]> {
    return await listPasskeys(this.#parts.db, userId);
  }

  async beginRegistration(user: { userId: string; email: string }, browser: string): Promise<PasskeyCeremony> {
    const known = await listPasskeys(this.#parts.db, user.userId);
    const options = await generateRegistrationOptions({
      rpName: 'Berth',
      rpID: this.#rpId,
      userName: user.email,
      userID: new TextEncoder().encode(user.userId),
      attestationType: 'none',
      supportedAlgorithmIDs: ALGORITHMS,
      timeout: TIMEOUT_MS,
      excludeCredentials: known.map(({ id }) => ({ id })),
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    });
    const sealed = sealPending(this.#keys, ownerOf(`registration ${user.userId}`, browser), options.challenge);
    return { options: JSON.stringify(options), sealed };
  }

  async register(userId: string, sent: SentCredential & { name: string }, browser: string): Promise<void> {
    const expectedChallenge = openPending(this.#keys, ownerOf(`registration ${userId}`, browser), sent.sealed);
    const { registrationInfo } = await this.#verified(() =>
      verifyRegistrationResponse({
        response: JSON.parse(sent.credential) as RegistrationResponseJSON,
        expectedChallenge,
        ...this.#expected(),
        supportedAlgorithmIDs: ALGORITHMS,
      }),
    );
    if (registrationInfo === undefined) throw refused();
    const { id, publicKey, counter } = registrationInfo.credential;
    await this.#parts.db.transaction().execute(async (trx) => {
      await lockUser(trx, userId);
      if ((await listPasskeys(trx, userId)).length >= PASSKEYS_PER_USER)
        throw new SignInError('factor_conflict', `an account can have at most ${PASSKEYS_PER_USER} passkeys`);
      const made = await insertPasskey(trx, {
        id,
        userId,
        name: sent.name,
        publicKey: Buffer.from(publicKey),
        counter,
      });
      if (!made) throw new SignInError('factor_conflict', 'this passkey is registered already');
    });
  }

  async beginUse(browser: string): Promise<PasskeyCeremony> {
    const options = await generateAuthenticationOptions({
      rpID: this.#rpId,
      userVerification: 'required',
      timeout: TIMEOUT_MS,
    });
    return {
      options: JSON.stringify(options),
      sealed: sealPending(this.#keys, ownerOf('use', browser), options.challenge),
    };
  }

  async use(sent: SentCredential, browser: string, caller: Caller): Promise<{ userId: string }> {
    await this.#parts.throttle('passkey', [addressKey(caller.address)]);
    const expectedChallenge = openPending(this.#keys, ownerOf('use', browser), sent.sealed);
    const response = await this.#verified(() => readCredential(sent.credential));
    const { db } = this.#parts;
    const known = await findPasskey(db, response.id);
    if (known === undefined) throw refused();
    const { id } = response;
    const { verified, authenticationInfo } = await this.#verified(() =>
      verifyAuthenticationResponse({
        response,
        expectedChallenge,
        ...this.#expected(),
        credential: { id, publicKey: new Uint8Array(known.publicKey), counter: known.counter },
      }),
    );
    if (!verified) throw refused();
    const challenge = createHash('sha256').update(expectedChallenge).digest();
    await db.transaction().execute(async (trx) => {
      // Kept longer than the challenge is valid.
      if (!(await spendChallenge(trx, challenge, 2 * PENDING_MINUTES))) throw refused();
      if (!(await usePasskey(trx, id, known.counter, authenticationInfo.newCounter))) throw refused();
    });
    return { userId: known.userId };
  }

  async rename(userId: string, id: string, name: string): Promise<boolean> {
    return await renamePasskey(this.#parts.db, userId, id, name);
  }

  async remove(userId: string, id: string): Promise<boolean> {
    return await deletePasskey(this.#parts.db, userId, id);
  }

  #expected() {
    return {
      expectedOrigin: this.#parts.settings.publicUrl,
      expectedRPID: this.#rpId,
      requireUserVerification: true,
    };
  }

  /** Runs a check of what the browser sent. Every failure of it is the same refusal. */
  async #verified<T>(check: () => T | Promise<T>): Promise<T> {
    try {
      return await check();
    } catch (error) {
      this.#parts.log.debug({ err: error }, 'passkey refused');
      throw refused();
    }
  }
}

/** Throws for another id than Postgres can store; the verification checks everything else. */
function readCredential(json: string): AuthenticationResponseJSON {
  const sent: unknown = JSON.parse(json);
  if (typeof sent === 'object' && sent !== null && 'id' in sent && typeof sent.id === 'string' && ID_FORM.test(sent.id))
    return sent as AuthenticationResponseJSON;
  throw new TypeError('the credential has no id');
}

function refused(): SignInError {
  return new SignInError('passkey_refused', 'this passkey was not accepted; try again, or sign in another way');
}

function ownerOf(purpose: string, browser: string): string {
  return `passkey ${purpose} ${createHash('sha256').update(browser).digest('base64url')}`;
}
