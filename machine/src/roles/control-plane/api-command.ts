// Commands of the API's program that need no running API: the first account and key, further keys,
// the owner's link, an org's plan, the end of a requirement of single sign-on.
import {
  bootstrapResult,
  mintedKey,
  ownerLink,
  planChange,
  secretsState,
  ssoChange,
} from '@berth/protocol/operator-commands.ts';
import type {
  BootstrapResult,
  MintedKey,
  OwnerLink,
  PlanChange,
  SecretsState,
  SsoChange,
} from '@berth/protocol/operator-commands.ts';
import { startConfined } from '../../supervisor/child.ts';
import { OperatorFailure } from '../../output/failure.ts';
import { confinedApi, withPlansOfLastUp } from './service.ts';
import type { RoleContext } from '../../supervisor/role.ts';

const DEADLINE_MS = 120_000;

/** Makes the first account, org, project and key of an installation, or reports that they exist. */
export async function bootstrap(options: RoleContext): Promise<BootstrapResult> {
  return bootstrapResult.parse(await runApiCommand(options, ['bootstrap']));
}

export async function createKey(options: RoleContext, name: string): Promise<MintedKey> {
  return mintedKey.parse(await runApiCommand(options, ['keys', 'create', '--name', name]));
}

/** Makes a new link; invalidates earlier ones. */
export async function makeOwnerLink(options: RoleContext): Promise<OwnerLink> {
  return ownerLink.parse(await runApiCommand(options, ['owner-link']));
}

/** Sets an org's plan from the catalogue; null: the operator's org. */
export async function setPlan(options: RoleContext, org: string | null, plan: string): Promise<PlanChange> {
  return planChange.parse(
    await runApiCommand(options, ['plans', 'set', ...(org === null ? [] : ['--org', org]), '--plan', plan]),
  );
}

/** Ends an org's requirement of single sign-on. */
export async function switchSsoOff(options: RoleContext, org: string): Promise<SsoChange> {
  return ssoChange.parse(await runApiCommand(options, ['sso', 'off', '--org', org]));
}

/** Reads the state of the secret keys and host tokens. */
export async function readSecretsState(options: RoleContext): Promise<SecretsState> {
  return secretsState.parse(await runApiCommand(options, ['secrets', 'status']));
}

/**
 * Runs the API's program with these arguments. The last line of its output is its JSON result; the
 * lines before are its log.
 */
async function runApiCommand(options: RoleContext, args: readonly string[]): Promise<unknown> {
  let output = '';
  const child = await startConfined(await withPlansOfLastUp(options, await confinedApi(options, args)), (chunk) => {
    output += chunk.toString('utf8');
  });
  const late = setTimeout(() => void child.stop('SIGKILL', 0), DEADLINE_MS);
  const reason = await child.exited;
  clearTimeout(late);
  if (reason !== 'exit code 0') {
    throw new OperatorFailure(
      `the API's command '${args.join(' ')}' failed (${reason}):\n${output.trim().slice(-4_000)}`,
    );
  }

  return JSON.parse(output.trim().split('\n').at(-1) ?? '');
}
