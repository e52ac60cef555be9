// Environment variables of a sandbox: stored sealed, never returned, and sent to its VM with each
// start of a program.
import { randomBytes } from 'node:crypto';
import { COMMAND_OPTION_LIMITS, SANDBOX_VARIABLES } from '@berth/contract/route/command-options.ts';
import { stageVariables as stage } from '@berth/protocol/calls/variables.ts';
import { HostError } from '../../hosts/error.ts';
import type { Actor } from '../../rules/access/access.ts';
import { CodedError, invalidField } from '../../rules/coded-error.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import * as store from '../../store/sandboxes/variables.ts';
import type { ServiceContext } from '../context/context.ts';
import { openText, sealText } from '../context/sealed.ts';
import { lockChangeable } from './intent.ts';
import type { SandboxInUse } from './use.ts';

type Changes = Readonly<Record<string, string | null>>;

interface Variable {
  name: string;
  updatedAt: string;
}

export async function listVariables({ db }: Pick<ServiceContext, 'db'>, sandboxId: string): Promise<Variable[]> {
  const rows = await store.listVariables(db, sandboxId);
  return rows.map(({ name, updated_at: at }) => ({ name, updatedAt: at.toISOString() }));
}

/**
 * Sets variables and removes those that are null, or with `replaces` all others. Throws
 * `invalid_request` over the limits, `sandbox_state_conflict` for a sandbox that is deleted or
 * being deleted.
 */
export async function changeVariables(
  context: ServiceContext,
  actor: Actor,
  sandboxId: string,
  { changes, replaces }: { changes: Changes; replaces: boolean },
): Promise<Variable[]> {
  return await context.db.transaction().execute(async (trx) => {
    const sandbox = await lockChangeable(trx, sandboxId, 'it starts no programs any more');
    const before = await store.listVariables(trx, sandboxId);
    const removed = before
      .map(({ name }) => name)
      .filter((name) => (replaces ? !Object.hasOwn(changes, name) : changes[name] === null));
    const kept = before.filter(({ name }) => !Object.hasOwn(changes, name) && !removed.includes(name));
    if (removed.length > 0) await store.deleteVariables(trx, sandboxId, removed);
    const count = await storeVariables(context, trx, { orgId: sandbox.org_id, sandboxId, changes, kept });
    if (removed.length + count > 0) {
      await insertActivity(trx, {
        orgId: sandbox.org_id,
        projectId: sandbox.project_id,
        sandboxId,
        actor,
        kind: 'sandbox_variables_changed',
        details: { set: count, removed: removed.length },
      });
    }
    return await listVariables({ db: trx }, sandboxId);
  });
}

interface Storing {
  orgId: string;
  sandboxId: string;
  changes: Changes;
  /** Variables that stay as they are. */
  kept?: readonly { bytes: number }[];
}

/** Stores the variables that are not null; returns their number. Throws `invalid_request`. */
export async function storeVariables(
  { secretKey }: Pick<ServiceContext, 'secretKey'>,
  trx: DatabaseTransaction,
  { orgId, sandboxId, changes, kept = [] }: Storing,
): Promise<number> {
  const keys = secretKey.keysFor('sandbox-variables');
  const added = Object.entries(changes).flatMap(([name, value]) =>
    value === null ? [] : [{ name, value, bytes: Buffer.byteLength(name) + Buffer.byteLength(value) }],
  );
  const all = [...kept, ...added];
  const bytes = all.reduce((sum, one) => sum + one.bytes, 0);
  const most = SANDBOX_VARIABLES;
  if (all.length > most.variables)
    throw invalidField('body.variables', `makes ${all.length} variables; at most ${most.variables} are kept`);
  if (bytes > most.bytes)
    throw invalidField('body.variables', `makes ${bytes} bytes of names and values; at most ${most.bytes} are kept`);
  await store.writeVariables(
    trx,
    added.map(({ name, value, bytes: size }) => {
      const of = { orgId, sandboxId, name };
      return { ...of, bytes: size, sealed: sealText(keys, store.variableId(of), value) };
    }),
  );
  return added.length;
}

interface StartsPrograms {
  id: string;
  org_id: string;
}

/**
 * The environment of a program that starts now, as `NAME=VALUE`: the sandbox's variables, and the
 * request's, which win. Undefined if there are none. Throws `invalid_request` if together they are
 * more than a program gets.
 */
export async function environmentFor(
  { db, secretKey }: Pick<ServiceContext, 'db' | 'secretKey'>,
  { id: sandboxId, org_id: orgId }: StartsPrograms,
  requested?: Readonly<Record<string, string>>,
  field = 'body.env',
): Promise<string[] | undefined> {
  const rows = await store.readVariables(db, sandboxId);
  if (rows.length === 0 && requested === undefined) return undefined;
  const keys = secretKey.keysFor('sandbox-variables');
  const all = new Map<string, string>();
  for (const { name, value_sealed: sealed } of rows)
    all.set(name, openText(keys, store.variableId({ orgId, sandboxId, name }), sealed));
  for (const [name, value] of Object.entries(requested ?? {})) all.set(name, value);

  const { variables, characters } = COMMAND_OPTION_LIMITS.env;
  const length = [...all].reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (all.size > variables || length > characters) {
    const problem = all.size > variables ? `${all.size} variables` : `${length} characters in all names and values`;
    const limit = all.size > variables ? variables : characters;
    throw invalidField(field, `has ${problem} together with the sandbox's variables; at most ${limit} are allowed`);
  }
  return [...all].map(([name, value]) => `${name}=${value}`);
}

/**
 * Gives the guest the variables of a start that follows, and returns their id for it; {} if there
 * are none: those of the sandbox, and those of `query.env`, which win. Throws
 * `variables_unsupported`, and as {@link environmentFor}.
 */
export async function stageVariables(
  context: Pick<ServiceContext, 'db' | 'secretKey' | 'hosts'>,
  sandbox: SandboxInUse,
  { signal, requested }: { signal?: AbortSignal; requested?: Readonly<Record<string, string>> | undefined } = {},
): Promise<{ variables?: string }> {
  const env = await environmentFor(context, sandbox, requested, 'query.env');
  if (env === undefined) return {};
  const variables = randomBytes(16).toString('hex');
  const request = { vmId: sandbox.id, params: { variablesId: variables }, body: { env } };
  try {
    await context.hosts.at(sandbox.host_url).call(stage, request, { signal });
  } catch (error) {
    if (!(error instanceof HostError && error.code === 'variables_unsupported')) throw error;
    throw new CodedError(
      'variables_unsupported',
      'this sandbox is of a release without variables for terminals and agents; unset its variables, give none, or ' +
        'create another sandbox',
      { cause: error },
    );
  }
  return { variables };
}
