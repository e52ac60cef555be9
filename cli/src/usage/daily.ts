// `berth usage daily`: machine hours by day.
import type { CliContext } from '../program/context.ts';
import { bar, hours } from '../output/amount.ts';
import type { Input } from '../program/command-spec.ts';

interface DailyInput {
  days?: number;
  project?: string;
  endUser?: string;
}

const BAR_CELLS = 24;

export async function showDailyUsage(
  { connect, out, signal }: CliContext,
  { options: { days, project, endUser } }: Input<DailyInput>,
): Promise<void> {
  const { berth, orgId } = await connect();
  const query = {
    ...(days === undefined ? {} : { days }),
    ...(project === undefined ? {} : { projectId: project }),
    ...(endUser === undefined ? {} : { endUserId: endUser }),
  };
  const answer = await berth.raw.getDailyUsage({ path: { orgId: await orgId() }, query, signal });
  if (out.json) return out.object(answer);
  const most = Math.max(...answer.days.map(({ machineHours }) => machineHours));
  const share = (machineHours: number): number => (most === 0 ? 0 : (machineHours / most) * 100);
  out.table(
    [
      { title: 'day (UTC)', value: ({ date }) => date, whole: true },
      { title: 'used', value: ({ machineHours }) => hours(machineHours), align: 'right' },
      ...(out.columns === undefined
        ? []
        : [{ title: '', value: ({ machineHours }: { machineHours: number }) => bar(share(machineHours), BAR_CELLS) }]),
    ],
    answer.days,
    'no usage',
  );
}
