// Builds the body of a create request from options. Never sends a private key.
import { open } from 'node:fs/promises';
import {
  PRIVATE_KEY,
  sshPublicKeyFault,
  type Agent,
  type MachineSize,
  type PersistencePolicy,
  type Profile,
  type SandboxEgress,
  type SandboxSpec,
} from '@berth/sdk';
import { SSH_PUBLIC_KEY } from '@berth/sdk/limits';
import { quoted } from '../commands/command-text.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';

/** Parsed `sandboxOptions`. false for `--no-repository` and `--no-branch`. */
export interface SandboxOptions {
  name?: string;
  agent: Agent;
  sandboxProfile?: Profile;
  size?: MachineSize;
  endUser?: string;
  metadata?: Record<string, string>;
  idleMinutes?: number;
  mode?: 'persistent' | 'ephemeral';
  ttlSeconds?: number;
  persistencePolicy?: PersistencePolicy;
  repository?: string | false;
  branch?: string | false;
  egress?: SandboxEgress;
  sshKey?: string;
}

const KEY_FILE_MAX_BYTES = 65_536;

/** Throws a UsageError for conflicting options and invalid keys. */
export async function sandboxSpec(options: SandboxOptions): Promise<SandboxSpec> {
  const {
    name,
    agent,
    sandboxProfile,
    size,
    endUser,
    metadata,
    idleMinutes,
    ttlSeconds,
    persistencePolicy,
    repository,
    branch,
    egress,
    sshKey,
  } = options;
  const mode = options.mode ?? (ttlSeconds === undefined ? 'persistent' : 'ephemeral');
  if (mode === 'persistent' && ttlSeconds !== undefined)
    throw new UsageError('--ttl-seconds cannot be combined with --mode persistent');
  if (mode === 'ephemeral' && ttlSeconds === undefined)
    throw new UsageError('--mode ephemeral requires --ttl-seconds, for example --ttl-seconds 2h');
  return {
    agent,
    ...(name === undefined ? {} : { name }),
    ...(sandboxProfile === undefined ? {} : { profile: sandboxProfile }),
    ...(size === undefined ? {} : { machineSize: size }),
    ...(endUser === undefined ? {} : { endUserId: endUser }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(idleMinutes === undefined ? {} : { idleMinutes }),
    ...(mode === 'persistent' ? {} : { mode }),
    ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
    ...(persistencePolicy === undefined ? {} : { persistencePolicy }),
    ...(repository === undefined ? {} : { repository: repository === false ? null : repository }),
    ...(branch === undefined ? {} : { branch: branch === false ? null : branch }),
    ...(egress === undefined ? {} : { egress }),
    ...(sshKey === undefined ? {} : { sshPublicKey: await publicKeyIn(sshKey) }),
  };
}

/** Reads the public key of a file. Errors never quote the content. */
async function publicKeyIn(path: string): Promise<string> {
  const shown = plainText(path);
  const text = await textOf(path, shown);
  if (PRIVATE_KEY.test(text)) {
    throw new UsageError(`${shown} is a private key; it was not sent`, {
      remedy: `use the public key: --ssh-key ${quoted(`${shown}.pub`)}`,
    });
  }
  if (text.length > SSH_PUBLIC_KEY.characters)
    throw new UsageError(`${shown} is too long for a public key (limit ${SSH_PUBLIC_KEY.characters} characters)`);
  const line = text.trim();
  const fault = sshPublicKeyFault(line);
  if (fault === null) return line;
  throw new UsageError(`${shown} ${fault}`);
}

async function textOf(path: string, shown: string): Promise<string> {
  try {
    const file = await open(path);
    try {
      // Bounded read: the path may be an endless device.
      const pieces: Buffer[] = [];
      for (let length = 0; length <= KEY_FILE_MAX_BYTES;) {
        const { bytesRead, buffer } = await file.read({ buffer: Buffer.alloc(KEY_FILE_MAX_BYTES) });
        if (bytesRead === 0) return Buffer.concat(pieces).toString('utf8');
        pieces.push(buffer.subarray(0, bytesRead));
        length += bytesRead;
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new UsageError(`cannot read ${shown}: ${(error as Error).message}`, { cause: error });
  }
  throw new UsageError(`${shown} is too large for a public key (limit ${KEY_FILE_MAX_BYTES} bytes)`);
}
