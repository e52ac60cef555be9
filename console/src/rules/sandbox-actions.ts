// Actions on a sandbox: possible now, or the reason why not. Derived from the service's own table.
import { SANDBOX_ACTION_RULES, type api, type Permission } from '@berth/sdk';
import { mayIn } from './access.ts';

export type SandboxAction = 'sleep' | 'wake' | 'resize' | 'renew' | 'destroy';
/** `connect`: opens a terminal. `agent_session`: starts a session of its agent. */
export type SandboxUse = SandboxAction | 'connect' | 'exec' | 'agent_session';

export type Possibility =
  | { kind: 'possible' }
  /** The person lacks the permission in the org. */
  | { kind: 'forbidden'; permission: Permission }
  /** `done`: the status is already, or becomes, the one that the action leads to. */
  | { kind: 'state'; done: boolean; status: string; statuses: readonly string[] }
  | { kind: 'not-ephemeral' }
  | { kind: 'nothing-to-wake' };

export const ACTION_PERMISSIONS: Readonly<Record<SandboxUse, Permission>> = {
  connect: 'sandbox.connect',
  exec: 'sandbox.exec',
  agent_session: 'agent_session.send',
  sleep: 'sandbox.stop',
  wake: 'sandbox.wake',
  resize: 'sandbox.resize',
  renew: 'sandbox.stop',
  destroy: 'sandbox.destroy',
};

type Actionable = Pick<api.Sandbox, 'status' | 'mode' | 'wakesFrom'>;

/** @param org the sandbox's */
export function possibilityOf(action: SandboxUse, sandbox: Actionable, org: Pick<api.Org, 'permissions'>): Possibility {
  const permission = ACTION_PERMISSIONS[action];
  if (!mayIn(org, permission)) return { kind: 'forbidden', permission };
  if (action === 'renew' && sandbox.mode !== 'ephemeral') return { kind: 'not-ephemeral' };
  const rules: Readonly<Record<string, string>> = SANDBOX_ACTION_RULES[action];
  const decision = rules[sandbox.status];
  // The service decides about a status that this version does not know.
  if (decision === undefined) return { kind: 'possible' };
  if (decision !== 'do') {
    const statuses = Object.keys(rules).filter((status) => rules[status] === 'do');
    return { kind: 'state', done: decision === 'done', status: sandbox.status, statuses };
  }
  if (action === 'wake' && sandbox.wakesFrom === null) return { kind: 'nothing-to-wake' };
  return { kind: 'possible' };
}
