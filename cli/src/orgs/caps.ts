// `berth org caps` and `berth project caps`: how many machine hours a billing period may use, shown
// and set.
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
    if (out.json) {
      out.object(answer);
      return;
    }
    const { plan, sandboxMachineHourLimit, sandboxOverageEnabled, periodEndsAt } = answer.subscription;
    out.fields([
      ['included', hours(plan.includedMachineHours, 'without a limit')],
      ['cap of your own', hours(sandboxMachineHourLimit, 'none')],
      ['beyond the cap', sandboxOverageEnabled ? 'work goes on' : 'work ends'],
      ['period ends', periodEndsAt],
    ]);
    return;
  }
  const body = {
    ...(machineHours === undefined ? {} : { sandboxMachineHourLimit: machineHours === 'none' ? null : machineHours }),
    ...(overage === undefined ? {} : { sandboxOverageEnabled: overage === 'on' }),
  };
  const answer = await berth.raw.updateUsageGuardrails({ path, body, signal });
  if (out.json) {
    out.object(answer);
    return;
  }
  const { includedMachineHours, sandboxMachineHourLimit, sandboxMachineHourLimitOverride, sandboxOverageEnabled } =
    answer.usageGuardrails;
  out.fields([
    ['included', hours(includedMachineHours, 'without a limit')],
    ['cap of your own', hours(sandboxMachineHourLimitOverride, 'none')],
    ['cap in force', hours(sandboxMachineHourLimit, 'none')],
    ['beyond the cap', sandboxOverageEnabled ? 'work goes on' : 'work ends'],
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
    if (out.json) {
      out.object(answer);
      return;
    }
    limit = answer.project.sandboxMachineHourLimit;
  } else {
    const answer = await berth.raw.updateProjectUsageGuardrails({
      path,
      body: { sandboxMachineHourLimit: machineHours === 'none' ? null : machineHours },
      signal,
    });
    if (out.json) {
      out.object(answer);
      return;
    }
    limit = answer.usageGuardrails.sandboxMachineHourLimit;
  }
  out.fields([
    ['project', path.projectId],
    ["cap inside the org's", hours(limit, 'none')],
  ]);
}

function hours(amount: number | null, none: string): string {
  return amount === null ? none : `${amount} machine hours`;
}
