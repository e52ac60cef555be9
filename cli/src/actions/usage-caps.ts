// `berth usage caps`: the guardrails of the org, or a project's own; shown, or set.
import type { CliContext } from '../context.ts';
import { UsageError } from '../failure.ts';
import { hours } from '../output/amount.ts';
import type { Input } from '../spec.ts';
import { capFields } from './usage-show.ts';

interface CapsInput {
  project?: string;
  limit?: number | null;
  overage?: 'on' | 'off';
}

export async function usageCaps(context: CliContext, { options }: Input<CapsInput>): Promise<void> {
  const { project, limit, overage } = options;
  if (project !== undefined && overage !== undefined) throw new UsageError("--overage is the org's: a project has only a --limit");
  if (limit === undefined && overage === undefined) await show(context, project);
  else if (project === undefined) await setOfOrg(context, limit, overage);
  else await setOfProject(context, project, limit ?? null);
}

async function show({ connect, out, signal }: CliContext, projectId: string | undefined): Promise<void> {
  const { berth, orgId } = await connect();
  const query = projectId === undefined ? {} : { projectId };
  const usage = await berth.raw.getOrgUsage({ path: { orgId: await orgId() }, query, signal });
  const { sandboxMachineHourLimit: cap } = usage;
  if (out.json) out.object(usage);
  else if (projectId === undefined) out.fields([['cap', capText(cap)], ...capFields(usage)]);
  else
    out.fields([
      ['project', projectId],
      ['cap', capText(cap)],
    ]);
}

async function setOfOrg({ connect, out, signal }: CliContext, limit: CapsInput['limit'], overage: CapsInput['overage']): Promise<void> {
  const { berth, orgId } = await connect();
  const body = {
    ...(limit === undefined ? {} : { sandboxMachineHourLimit: limit }),
    ...(overage === undefined ? {} : { sandboxOverageEnabled: overage === 'on' }),
  };
  const answer = await berth.raw.updateUsageGuardrails({ path: { orgId: await orgId() }, body, signal });
  const { usageGuardrails } = answer;
  if (out.json) out.object(answer);
  else out.fields([['cap', capText(usageGuardrails.sandboxMachineHourLimit)], ...capFields(usageGuardrails)]);
}

async function setOfProject({ connect, out, signal }: CliContext, projectId: string, limit: number | null): Promise<void> {
  const { berth, orgId } = await connect();
  const body = { sandboxMachineHourLimit: limit };
  const answer = await berth.raw.updateProjectUsageGuardrails({ path: { orgId: await orgId(), projectId }, body, signal });
  if (out.json) out.object(answer);
  else
    out.fields([
      ['project', projectId],
      ['cap', capText(answer.usageGuardrails.sandboxMachineHourLimit)],
    ]);
}

function capText(cap: number | null): string {
  return cap === null ? 'none' : `${hours(cap)} in a billing period`;
}
