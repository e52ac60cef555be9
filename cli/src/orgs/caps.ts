// `berth org caps` and `berth project caps`: caps of machine hours per billing period.
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import { projectMeant } from './projects.ts';

interface CapOptions {
  /** `none` removes the cap. */
  machineHours?: number | 'none';
  overage?: 'on' | 'off';
}

export async function orgCaps(
  { connect, out, signal }: CliContext,
  { options: { machineHours, overage } }: Input<CapOptions>,
): Promise<void> {
  const { berth, orgId } = await connect();
  const path = { orgId: await orgId() };
  if (machineHours === undefined && overage === undefined) {
    const answer = await berth.raw.getSubscription({ path, signal });
    if (out.json) return out.object(answer);
    const { plan, sandboxMachineHourLimit, sandboxOverageEnabled, periodEndsAt } = answer.subscription;
    out.fields([
      ['included', hours(plan.includedMachineHours, 'unlimited')],
      ['own cap', hours(sandboxMachineHourLimit, 'none')],
      ['overage allowed', sandboxOverageEnabled ? 'yes' : 'no'],
      ['period ends', periodEndsAt],
    ]);
    return;
  }
  const body = {
    ...(machineHours === undefined ? {} : { sandboxMachineHourLimit: machineHours === 'none' ? null : machineHours }),
    ...(overage === undefined ? {} : { sandboxOverageEnabled: overage === 'on' }),
  };
  const answer = await berth.raw.updateUsageGuardrails({ path, body, signal });
  if (out.json) return out.object(answer);
  const { includedMachineHours, sandboxMachineHourLimit, sandboxMachineHourLimitOverride, sandboxOverageEnabled } =
    answer.usageGuardrails;
  out.fields([
    ['included', hours(includedMachineHours, 'unlimited')],
    ['own cap', hours(sandboxMachineHourLimitOverride, 'none')],
    ['effective cap', hours(sandboxMachineHourLimit, 'none')],
    ['overage allowed', sandboxOverageEnabled ? 'yes' : 'no'],
  ]);
}

export async function projectCaps(
  context: CliContext,
  { args: [typed], options: { machineHours } }: Input<CapOptions>,
): Promise<void> {
  const { connect, out, signal } = context;
  const { berth, orgId } = await connect();
  const path = { orgId: await orgId(), projectId: await projectMeant(context, typed) };
  let limit: number | null;
  if (machineHours === undefined) {
    const answer = await berth.raw.getProject({ path, signal });
    if (out.json) return out.object(answer);
    limit = answer.project.sandboxMachineHourLimit;
  } else {
    const answer = await berth.raw.updateProjectUsageGuardrails({
      path,
      body: { sandboxMachineHourLimit: machineHours === 'none' ? null : machineHours },
      signal,
    });
    if (out.json) return out.object(answer);
    limit = answer.usageGuardrails.sandboxMachineHourLimit;
  }
  out.fields([
    ['project', path.projectId],
    ['cap', hours(limit, 'none')],
  ]);
}

function hours(amount: number | null, none: string): string {
  return amount === null ? none : `${amount} machine hours`;
}
