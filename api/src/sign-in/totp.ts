// One-time codes: of authenticator apps (RFC 6238, in the form that every app supports), and
// recovery codes.
import { createHash, randomInt } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';

const STEP_SECONDS = 30;
const SECRET_BYTES = 20;
/** Steps before and after the current one, for clocks that differ. */
const WINDOW = 1;
const RECOVERY_CODES = 10;
/** 79 bits: too many to try on a stolen hash. */
const RECOVERY_CHARACTERS = 16;
/** Without i, l, o and 1, 0, which look alike. */
const ALPHABET = 'abcdefghjkmnpqrstuvwxyz23456789';

/** A new secret in base32. */
export function newSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32;
}

/** The address in the QR code, which names the service and the account in the app. */
export function totpUri(secret: string, host: string, email: string): string {
  return totpOf(secret, { issuer: `Berth (${host})`, label: email }).toString();
}

/** The time step of a valid code; null if the code is wrong now. */
export function stepOfCode(secret: string, typed: string, nowMs: number = Date.now()): number | null {
  const token = typed.replaceAll(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return null;
  const delta = totpOf(secret).validate({ token, window: WINDOW, timestamp: nowMs });
  return delta === null ? null : Math.floor(nowMs / 1_000 / STEP_SECONDS) + delta;
}

/** New recovery codes in the form `abcd-efgh-jkmn-pqrs`. */
export function newRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const code = Array.from({ length: RECOVERY_CHARACTERS }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join(
      '',
    );
    return code.replaceAll(/.{4}(?=.)/g, '$&-');
  });
}

/** Hash of a typed recovery code, in any case and with any separators; null for other text. */
export function recoveryCodeHash(typed: string): Buffer | null {
  const code = typed.toLowerCase().replaceAll(/[^0-9a-z]/g, '');
  return code.length === RECOVERY_CHARACTERS ? createHash('sha256').update(code).digest() : null;
}

function totpOf(secret: string, names: { issuer?: string; label?: string } = {}): TOTP {
  return new TOTP({ ...names, secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: STEP_SECONDS });
}
