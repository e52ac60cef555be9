// `berth secrets`: rotates the secret key and the host token of this installation, also while its
// service runs. Each step leaves files that the service accepts, so a killed rotation is repeated.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { tryLock } from '@berth/os/file-lock.ts';
import { writeDurably } from '@berth/os/durable-file.ts';
import type { SecretsState } from '@berth/protocol/operator-commands.ts';
import { MOST_SECRETS, secretLines } from '@berth/protocol/secret-lines.ts';
import { commandHint } from '../output/command-hint.ts';
import { OperatorFailure } from '../output/failure.ts';
import { readSecretsState } from '../roles/control-plane/api-command.ts';
import { acceptsHostToken } from '../roles/host/service.ts';
import { requireRotatableKey, requireSecretKey, storeSecretKey } from '../roles/control-plane/secret-key.ts';
import { isSupervised, secretKeyFile } from '../supervisor/instance.ts';
import type { RoleContext } from '../supervisor/role.ts';
import type { VerbContext } from './context.ts';
import { withApiOnMachine } from './on-machine.ts';

const LOADED_DEADLINE_MS = 60_000;
const POLL_MS = 200;
const DAY_SECONDS = 86_400;

export type SecretName = 'secret-key' | 'host-token';

/** The secrets of a file, the current one first. */
interface SecretFile {
  name: SecretName;
  lines: readonly string[];
}

/** Throws an {@link OperatorFailure} for another name. */
export function requireSecretName(name: string | undefined): SecretName {
  if (name === 'secret-key' || name === 'host-token') return name;
  throw new OperatorFailure(`unknown secret '${name ?? ''}'`, { remedy: 'known: secret-key, host-token' });
}

/** Prints a line per secret on stdout. */
export async function showSecrets(context: VerbContext): Promise<number> {
  return await withApiOnMachine(context, async (options) => {
    await requireSecretKey(options.paths, options.user, context.environment);
    const state = await readSecretsState(options);
    for (const { id, current, values, neededSeconds } of state.secretKeys) {
      const needs = [
        values > 0 ? `${values} stored values` : null,
        neededSeconds > 0 ? `sign-ins and links for ${Math.ceil(neededSeconds / DAY_SECONDS)} days` : null,
      ].filter((need) => need !== null);
      const note = current
        ? `${values} stored values`
        : needs.length === 0
          ? 'unused'
          : `needed by ${needs.join(', ')}`;
      context.print(`secret-key ${id} ${current ? 'current' : 'former'} ${note}`);
    }
    state.hostTokenIds.forEach((id, index) => context.print(`host-token ${id} ${index === 0 ? 'current' : 'former'}`));
    if (state.otherValues > 0) {
      context.progress.say(
        `! ${state.otherValues} stored values name no key of the file; while the API runs, it seals those of earlier ` +
          'releases again. If the number stays, add the missing key to the file.',
      );
    }
    return 0;
  });
}

/** Makes a new current secret. The former one stays valid until nothing needs it. */
export async function rotateSecret(context: VerbContext, name: SecretName): Promise<number> {
  return await withTurn(context, name, async (options) => {
    const fresh = randomBytes(32).toString('base64url');
    const before = await readSecret(options, name);
    if (before.lines.length > 1) await removeUnneeded(context, options, name);
    const { lines } = await readSecret(options, name);
    if (lines.length >= MOST_SECRETS) {
      const retire = commandHint(`secrets retire ${name} --force`, context.config);
      throw new OperatorFailure(`cannot rotate: ${lines.length} secrets are in use, the limit is ${MOST_SECRETS}`, {
        remedy: `rotate less often, or end what the former ones signed: ${retire}`,
      });
    }
    await write(context, options, { ...before, lines: [...lines, fresh] });
    await untilLoaded(context, options, name);
    await write(context, options, { ...before, lines: [fresh, ...lines] });
    await untilLoaded(context, options, name);
    context.progress.say(`The ${name} is new.`);
    await removeUnneeded(context, options, name);
    return 0;
  });
}

/** Removes former secrets that nothing needs; with `force`, all. */
export async function retireSecret(context: VerbContext, name: SecretName, force: boolean): Promise<number> {
  return await withTurn(context, name, async (options) => {
    const kept = await removeUnneeded(context, options, name, force);
    return kept === 0 ? 0 : 1;
  });
}

/** Removes former secrets; returns the number of those that are still needed. */
async function removeUnneeded(
  context: VerbContext,
  options: RoleContext,
  name: SecretName,
  force = false,
): Promise<number> {
  const { progress } = context;
  // After a killed rotation, a replica may still send, seal or sign with a former secret.
  await untilLoaded(context, options, name);
  const file = await readSecret(options, name);
  const state = await readSecretsState(options);
  const needed = (index: number): boolean => {
    if (index === 0) return true;
    if (name === 'host-token' || force) return false;
    const key = state.secretKeys[index];
    return key === undefined || key.values > 0 || key.neededSeconds > 0 || state.otherValues > 0;
  };
  const lines = file.lines.filter((_line, index) => needed(index));
  if (lines.length < file.lines.length) {
    await write(context, options, { ...file, lines });
    await untilLoaded(context, options, name);
    progress.say(`Removed ${file.lines.length - lines.length} former ${name} values.`);
  }
  const later = commandHint('secrets retire secret-key', context.config);
  for (const { id, values, neededSeconds } of name === 'host-token' ? [] : state.secretKeys.slice(1)) {
    const days = Math.ceil(neededSeconds / DAY_SECONDS);
    if (lines.length > 1 && (values > 0 || days > 0)) {
      progress.say(
        `The former key ${id} stays: ${values} stored values, and sign-ins and links for up to ${days} days. ` +
          `Later: ${later}`,
      );
    }
  }
  return lines.length - 1;
}

/** Resolves when every live replica, and the host daemon, has loaded the file. */
async function untilLoaded({ config, signal }: VerbContext, options: RoleContext, name: SecretName): Promise<void> {
  const deadline = performance.now() + LOADED_DEADLINE_MS;
  const served = await isSupervised(options.paths);
  for (;;) {
    const late = await missing(options, name, served);
    if (late === null) return;
    signal.throwIfAborted();
    if (performance.now() > deadline) {
      throw new OperatorFailure(
        `cannot go on: ${late} did not load the new ${name} within ${LOADED_DEADLINE_MS / 1_000} s`,
        {
          remedy:
            `nothing is lost: run ${commandHint(`secrets rotate ${name}`, config)} again once it runs; ` +
            `the logs are in ${options.paths.log}`,
        },
      );
    }
    await delay(POLL_MS, undefined, { signal });
  }
}

/** The part that has not loaded the file; null: none. */
async function missing(options: RoleContext, name: SecretName, served: boolean): Promise<string | null> {
  const { lines } = await readSecret(options, name);
  if (served && name === 'host-token')
    for (const token of lines) if (!(await acceptsHostToken(options.paths, token))) return 'the host daemon';
  const state = await readSecretsState(options);
  if (served && state.replicas.length === 0) return 'the API';
  return state.replicas.every((replica) => hasLoaded(replica, state, name)) ? null : 'an API replica';
}

function hasLoaded(replica: SecretsState['replicas'][number], state: SecretsState, name: SecretName): boolean {
  return name === 'secret-key'
    ? replica.secretKeyIds.join() === state.secretKeys.map(({ id }) => id).join()
    : replica.hostTokenIds.join() === state.hostTokenIds.join();
}

async function readSecret({ paths }: RoleContext, name: SecretName): Promise<SecretFile> {
  const path = name === 'secret-key' ? await secretKeyFile(paths) : paths.hostToken;
  return { name, lines: secretLines(await readFile(path, 'utf8')) };
}

async function write(
  { environment }: VerbContext,
  { paths, user }: RoleContext,
  { name, lines }: SecretFile,
): Promise<void> {
  const text = `${lines.join('\n')}\n`;
  if (name === 'secret-key') return await storeSecretKey(paths, user, environment, text);
  // Readable before it replaces the old file: a service may read it at any moment.
  await writeDurably(paths.hostToken, text, 0o640, { uid: 0, gid: user.gid });
}

/** Runs with the database; one command at a time. */
async function withTurn(
  context: VerbContext,
  name: SecretName,
  work: (options: RoleContext) => Promise<number>,
): Promise<number> {
  return await withApiOnMachine(context, async (options) => {
    const lock = await tryLock(join(options.paths.secrets, 'lock'));
    if (lock === null)
      throw new OperatorFailure('another berth secrets command runs', { remedy: 'wait until it has finished' });
    try {
      const { paths, user } = options;
      await requireSecretKey(paths, user, context.environment);
      if (name === 'secret-key') await requireRotatableKey(paths, user, context.environment);
      return await work(options);
    } finally {
      await lock.release();
    }
  });
}
