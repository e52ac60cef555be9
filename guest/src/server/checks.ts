// The request bodies of the guest wire, checked by hand: the same rules as the schemas in
// protocol/src/guest.ts (a property test holds them together), without zod in the machine.
import {
  CLONE_BOX_LENGTH,
  CLONE_BRANCH_LENGTH,
  CLONE_MAX_MIB,
  CLONE_KEY,
  CLONE_TIMEOUT_SECONDS,
  CLONE_URL_LENGTH,
  EXEC_COMMAND_LENGTH,
  EXEC_TIMEOUT_SECONDS,
} from '@berth/protocol/guest-limits.ts';
import type { GuestClone, GuestExecRequest, GuestIdentity, GuestSize, GuestWake } from '@berth/protocol/guest.ts';

/** A body that is not what the wire says; the message names the field. */
export class BodyRefused extends Error {
  override readonly name = 'BodyRefused';
}

type Fields = Readonly<Record<string, unknown>>;

/** Body of `POST /exec`. Throws {@link BodyRefused}. */
export function checkExecRequest(value: unknown): GuestExecRequest {
  const body = fields(value, 'the body', ['command', 'timeoutSeconds']);
  return {
    command: text(body, 'command', 1, EXEC_COMMAND_LENGTH),
    timeoutSeconds: integer(body, 'timeoutSeconds', EXEC_TIMEOUT_SECONDS.min, EXEC_TIMEOUT_SECONDS.max),
  };
}

/** Body of `POST /clone`. Throws {@link BodyRefused}; no message has a value of the body in it. */
export function checkClone(value: unknown): GuestClone {
  const body = fields(value, 'the body', ['url', 'branch', 'credentials', 'timeoutSeconds', 'maxMib']);
  const url = matching(
    body,
    'url',
    /^https?:\/\/[^\s/@?#\\]+\/[^\s?#\\]+$/,
    'an http or https URL without user name, query and fragment',
  );
  const credentials =
    body['credentials'] === null ? null : fields(body['credentials'], 'credentials', ['key', 'sender', 'box']);
  return {
    url: url.length <= CLONE_URL_LENGTH ? url : text(body, 'url', 1, CLONE_URL_LENGTH),
    branch: body['branch'] === null ? null : text(body, 'branch', 1, CLONE_BRANCH_LENGTH),
    credentials: credentials && {
      key: matching(credentials, 'key', CLONE_KEY, 'a key'),
      sender: matching(credentials, 'sender', CLONE_KEY, 'a key'),
      box: text(credentials, 'box', 1, CLONE_BOX_LENGTH),
    },
    timeoutSeconds: integer(body, 'timeoutSeconds', CLONE_TIMEOUT_SECONDS.min, CLONE_TIMEOUT_SECONDS.max),
    maxMib: integer(body, 'maxMib', CLONE_MAX_MIB.min, CLONE_MAX_MIB.max),
  };
}

/** Body of `POST /identity`. Throws {@link BodyRefused}. */
export function checkIdentity(value: unknown): GuestIdentity {
  const body = fields(value, 'the body', [
    'secret',
    'hostname',
    'machineId',
    'clockUnixMs',
    'entropy',
    'sshHostKey',
    'sshAuthorizedKeys',
    'vcpu',
    'memoryMib',
    'diskGib',
  ]);
  const key = fields(body['sshHostKey'], 'sshHostKey', ['privateKey', 'publicKey']);
  return {
    secret: text(body, 'secret', 43, 64),
    hostname: matching(body, 'hostname', /^[a-z0-9][a-z0-9-]{0,62}$/, 'a DNS label in lower case'),
    machineId: matching(body, 'machineId', /^[0-9a-f]{32}$/, '32 lowercase hex digits'),
    clockUnixMs: integer(body, 'clockUnixMs', 1),
    entropy: matching(body, 'entropy', /^[0-9a-zA-Z+/]{86}==$/, '64 bytes in base64'),
    sshHostKey: { privateKey: text(key, 'privateKey', 0, 4_096), publicKey: text(key, 'publicKey', 0, 1_024) },
    sshAuthorizedKeys: lines(body, 'sshAuthorizedKeys', 16, 16_384),
    ...size(body),
  };
}

/** Body of `POST /wake`. Throws {@link BodyRefused}. */
export function checkWake(value: unknown): GuestWake {
  const body = fields(value, 'the body', ['secret', 'clockUnixMs', 'entropy', 'vcpu', 'memoryMib', 'diskGib']);
  return {
    secret: text(body, 'secret', 43, 64),
    clockUnixMs: integer(body, 'clockUnixMs', 1),
    entropy: matching(body, 'entropy', /^[0-9a-zA-Z+/]{86}==$/, '64 bytes in base64'),
    ...size(body),
  };
}

/** Body of `POST /size`. Throws {@link BodyRefused}. */
export function checkSize(value: unknown): GuestSize {
  return size(fields(value, 'the body', ['vcpu', 'memoryMib', 'diskGib']));
}

function size(body: Fields): GuestSize {
  return {
    vcpu: integer(body, 'vcpu', 1, 64),
    memoryMib: integer(body, 'memoryMib', 128),
    diskGib: integer(body, 'diskGib', 1),
  };
}

function fields(value: unknown, name: string, allowed: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BodyRefused(`${name} must be an object`);

  const unknown = Object.keys(value).find((field) => !allowed.includes(field));
  if (unknown !== undefined)
    throw new BodyRefused(`${name} has an unknown field ${JSON.stringify(unknown)}; it takes ${allowed.join(', ')}`);

  return value as Fields;
}

function text(body: Fields, name: string, minLength: number, maxLength: number): string {
  const value = body[name];
  if (typeof value !== 'string' || value.length < minLength || value.length > maxLength)
    throw new BodyRefused(`${name} must be a string of ${minLength} to ${maxLength} characters`);

  return value;
}

function matching(body: Fields, name: string, pattern: RegExp, meaning: string): string {
  const value = body[name];
  if (typeof value !== 'string' || !pattern.test(value)) throw new BodyRefused(`${name} must be ${meaning}`);

  return value;
}

function integer(body: Fields, name: string, min: number, max: number = Number.MAX_SAFE_INTEGER): number {
  const value = body[name];
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max)
    throw new BodyRefused(`${name} must be a whole number from ${min} to ${max}`);

  return value as number;
}

function lines(body: Fields, name: string, maxCount: number, maxLength: number): string[] {
  const value = body[name];
  const fits = (line: unknown): boolean => typeof line === 'string' && line.length <= maxLength;
  if (!Array.isArray(value) || value.length > maxCount || !value.every(fits))
    throw new BodyRefused(`${name} must be at most ${maxCount} strings of at most ${maxLength} characters`);

  return value as string[];
}
