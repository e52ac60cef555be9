// Commands of the API's program that run on the machine and need no running API: the first account
// and key, further keys, the owner's link, an org's plan.
import { z } from 'zod';
import { startConfined } from '../../supervisor/child.ts';
import { OperatorFailure } from '../../output/failure.ts';
import { confinedApi, withPlansOfLastUp } from './service.ts';
import type { RoleContext } from '../../supervisor/role.ts';

const DEADLINE_MS = 120_000;

/**
 * Makes the first account, org, project and key of an installation, or tells that they are there.
 */
const bootstrapResult = z.discriminatedUnion('created', [
  z.object({
    created: z.literal(true),
    orgId: z.string(),
    projectId: z.string(),
    userId: z.string(),
    keyId: z.string(),
    token: z.string(),
    /** Page on which the owner takes the account over, with its token. */
    welcomePath: z.string().startsWith('/'),
  }),
  z.object({ created: z.literal(false), orgId: z.string(), projectId: z.string().nullable(), userId: z.string() }),
]);
export type BootstrapResult = z.infer<typeof bootstrapResult>;

/** A key that was just minted; its token is nowhere else. */
const mintedKey = z.object({ keyId: z.string(), token: z.string() });
type MintedKey = z.infer<typeof mintedKey>;

export async function bootstrap(options: RoleContext): Promise<BootstrapResult> {
  return bootstrapResult.parse(await runApiCommand(options, ['bootstrap']));
}

/** Mints an operator key of the owner's. */
export async function createKey(options: RoleContext, name: string): Promise<MintedKey> {
  return mintedKey.parse(await runApiCommand(options, ['keys', 'create', '--name', name]));
}

/**
 * A link with which the owner of the first org can sign in: a welcome to an account without a
 * password, a new password otherwise.
 */
const ownerLink = z.object({
  kind: z.enum(['welcome', 'reset_password']),
  path: z.string().startsWith('/'),
  email: z.string(),
  minutes: z.number(),
});
type OwnerLink = z.infer<typeof ownerLink>;

/** Makes a new link; earlier ones stop working. */
export async function makeOwnerLink(options: RoleContext): Promise<OwnerLink> {
  return ownerLink.parse(await runApiCommand(options, ['owner-link']));
}

/** An org's plan now, and the one it had. */
const planChange = z.object({
  orgId: z.string(),
  plan: z.string(),
  before: z.object({ plan: z.string(), status: z.string() }).nullable(),
});
type PlanChange = z.infer<typeof planChange>;

/** Puts a plan of the catalogue in force for the org; null: the first. */
export async function setPlan(options: RoleContext, org: string | null, plan: string): Promise<PlanChange> {
  return planChange.parse(
    await runApiCommand(options, ['plans', 'set', ...(org === null ? [] : ['--org', org]), '--plan', plan]),
  );
}

/**
 * Runs the API's program with these arguments; its last line of output is its JSON answer, the
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
