// Reads the files of the secret key and the host token, at start and after each change.
import { readFileSync } from 'node:fs';
import { secretLines } from '@berth/protocol/secret-lines.ts';
import { SecretKey } from '../services/context/secret-key.ts';

/** Paths of `BERTH_SECRET_KEY_FILE` and `BERTH_HOST_TOKEN_FILE`. */
export interface SecretFiles {
  secretKey: string;
  hostToken: string;
}

export interface SecretsOfFiles {
  /** Lines of base64, each of at least 32 random bytes. */
  secretKey: SecretKey;
  /** The current token first. */
  hostTokens: readonly [string, ...string[]];
}

const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** Throws naming the variable and the file, never a secret. */
export function readSecretFiles(files: SecretFiles): SecretsOfFiles {
  return {
    secretKey: read('BERTH_SECRET_KEY_FILE', files.secretKey, (lines) => {
      const wrong = lines.findIndex((line) => !BASE64.test(line));
      if (wrong !== -1) throw new Error(`secret key ${wrong + 1} is not base64`);
      const [current, ...former] = lines.map((line) => Buffer.from(line, 'base64'));
      if (current === undefined) throw new Error('the file is empty');
      return new SecretKey(current, ...former);
    }),
    hostTokens: read('BERTH_HOST_TOKEN_FILE', files.hostToken, (lines) => lines),
  };
}

function read<T>(variable: string, path: string, parse: (lines: [string, ...string[]]) => T): T {
  const text = readFileSync(path, 'utf8');
  try {
    return parse(secretLines(text));
  } catch (error) {
    throw new Error(`invalid environment: ${variable}: ${path}: ${(error as Error).message}`, { cause: error });
  }
}
