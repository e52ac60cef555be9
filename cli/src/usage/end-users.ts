import type { CliContext } from '../program/context.ts';
import { bar, hours, percent } from '../output/amount.ts';
import { instant } from '../output/time.ts';

const BAR_CELLS = 12;

export async function listEndUserUsage({ connect, out, signal }: CliContext): Promise<void> {
  const { berth, orgId } = await connect();
  const answer = await berth.raw.getEndUserUsage({ path: { orgId: await orgId() }, signal });
  if (out.json) return out.object(answer);
  const { endUsers } = answer;
  const total = endUsers.reduce((sum, { machineHours }) => sum + machineHours, 0);
  const shareOf = (machineHours: number): number => (total === 0 ? 0 : (machineHours / total) * 100);
  out.table(
    [
      { title: 'end user', value: ({ endUserId }) => endUserId },
      { title: 'used', value: ({ machineHours }) => hours(machineHours), align: 'right' },
      ...(out.columns === undefined
        ? []
        : [
            {
              title: 'share',
              value: ({ machineHours }: { machineHours: number }) => bar(shareOf(machineHours), BAR_CELLS),
            },
          ]),
      {
        title: out.columns === undefined ? 'share' : '%',
        value: ({ machineHours }) => percent(shareOf(machineHours)),
        align: 'right',
      },
      { title: 'est. cost', value: ({ estimatedCogsUsd }) => `$${estimatedCogsUsd.toFixed(2)}`, align: 'right' },
    ],
    endUsers,
    `no usage by end users since ${instant(answer.periodStartsAt)}`,
  );
}
