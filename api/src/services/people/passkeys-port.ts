// Interface of passkeys for pages. Types only; src/sign-in implements it.
import type { Caller } from './sign-in-port.ts';

export interface Passkey {
  id: string;
  name: string;
  since: Date;
  lastUsedAt: Date | null;
}

/** A registration or use of a passkey, to be run by the script of the page. */
export interface PasskeyCeremony {
  /** JSON for the browser's WebAuthn interface. */
  options: string;
  /** The challenge for the server alone, to be sent with the result. Expires. */
  sealed: string;
}

export interface SentCredential {
  sealed: string;
  /** JSON from the browser's WebAuthn interface. */
  credential: string;
}

/** `browser` is the secret of the browser's cookie: a challenge works in one browser. */
export interface PasskeySet {
  /** False if the service's public URL is an address or is not secure: browsers refuse passkeys. */
  readonly possible: boolean;
  list(userId: string): Promise<Passkey[]>;
  beginRegistration(user: { userId: string; email: string }, browser: string): Promise<PasskeyCeremony>;
  /** Throws `passkey_refused`, `link_invalid`, `factor_conflict`. */
  register(userId: string, sent: SentCredential & { name: string }, browser: string): Promise<void>;
  beginUse(browser: string): Promise<PasskeyCeremony>;
  /** The holder of a passkey; once per challenge. Throws `passkey_refused`, `link_invalid`. */
  use(sent: SentCredential, browser: string, caller: Caller): Promise<{ userId: string }>;
  /** Returns false if the user has no such passkey. */
  rename(userId: string, id: string, name: string): Promise<boolean>;
  /** Returns false if the user has no such passkey. */
  remove(userId: string, id: string): Promise<boolean>;
}
