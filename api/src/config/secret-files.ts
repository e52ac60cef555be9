// Reads the secret key and the host token: files at start and after each change, the output of a
// command at start.
import { readFileSync } from 'node:fs';
import { runSecretCommand } from '@berth/os/secrets/secret-command.ts';
import { secretLines } from '@berth/protocol/secret-lines.ts';
import type { z } from 'zod';
import { SecretKey } from '../services/context/secret-key.ts';
import type { secretsEnvironment } from './environment.ts';

export interface SecretFiles {
  /** Path of `BERTH_SECRET_KEY_FILE`, or the key that `BERTH_SECRET_KEY_COMMAND` printed. */
  secretKey: string | SecretKey;
  /** Path of `BERTH_HOST_TOKEN_FILE`. */
  hostToken: string;
}

export interface SecretsOfFiles {
  /** Lines of base64, each of at least 32 random bytes. */
  secretKey: SecretKey;
  /** The current token first. */
  hostTokens: readonly [string, ...string[]];
}

const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Runs `BERTH_SECRET_KEY_COMMAND`, if set. Throws naming the variable, never a secret. */
export function findSecretFiles(
  values: z.output<typeof secretsEnvironment>,
  environment: Readonly<NodeJS.ProcessEnv>,
): SecretFiles {
  const { BERTH_SECRET_KEY_FILE: file, BERTH_SECRET_KEY_COMMAND: line, BERTH_HOST_TOKEN_FILE: hostToken } = values;
  if (file !== undefined && line === undefined) return { secretKey: file, hostToken };
  if (file !== undefined || line === undefined)
    throw new Error('invalid environment: set either BERTH_SECRET_KEY_FILE or BERTH_SECRET_KEY_COMMAND');
  const variable = 'BERTH_SECRET_KEY_COMMAND';
  const output = runSecretCommand({ variable, line, environment });
  return { secretKey: parse(variable, 'its output', output, secretKeyOf), hostToken };
}

/** Throws naming the variable and the file, never a secret. */
export function readSecretFiles({ secretKey, hostToken }: SecretFiles): SecretsOfFiles {
  return {
    secretKey: typeof secretKey === 'string' ? read('BERTH_SECRET_KEY_FILE', secretKey, secretKeyOf) : secretKey,
    hostTokens: read('BERTH_HOST_TOKEN_FILE', hostToken, (lines) => lines),
  };
}

function secretKeyOf(lines: [string, ...string[]]): SecretKey {
  const wrong = lines.findIndex((line) => !BASE64.test(line));
  if (wrong !== -1) throw new Error(`secret key ${wrong + 1} is not base64`);
  const [current, ...former] = lines.map((line) => Buffer.from(line, 'base64'));
  if (current === undefined) throw new Error('the file is empty');
  return new SecretKey(current, ...former);
}

function read<T>(variable: string, path: string, of: (lines: [string, ...string[]]) => T): T {
  return parse(variable, path, readFileSync(path, 'utf8'), of);
}

function parse<T>(variable: string, from: string, text: string, of: (lines: [string, ...string[]]) => T): T {
  try {
    return of(secretLines(text));
  } catch (error) {
    throw new Error(`invalid environment: ${variable}: ${from}: ${(error as Error).message}`, { cause: error });
  }
}
