// Wire format of processes.
import { followProcessOutput } from '@berth/contract/commands/follow.ts';
import * as contract from '@berth/contract/commands/processes.ts';
import * as output from '../../services/commands/process-output.ts';
import * as processes from '../../services/commands/processes.ts';
import { bind, bindWebSocket } from '../../call/bind.ts';

export const processRoutes = [
  bind(contract.startProcess, async (context, call) => ({
    process: await processes.startProcess(context, call, call.body, call),
  })),
  bind(contract.listProcesses, async (context, call) => ({ processes: await processes.listProcesses(context, call) })),
  bind(contract.getProcess, async (context, call) => ({
    process: await processes.getProcess(context, call, call.holdMs),
  })),
  bind(contract.readProcessOutput, (context, call) =>
    output.readOutput(context, call, { ...call.query, waitMs: call.holdMs }),
  ),
  bindWebSocket(
    followProcessOutput,
    () => 'process',
    (context, connecting, query, { processId }) => output.followOutput(context, connecting, processId, query),
  ),
  bind(contract.writeProcessInput, async (context, call) => ({
    offset: await processes.writeInput(context, call, call.body),
  })),
  bind(contract.signalProcess, async (context, call) => ({
    process: await processes.signalProcess(context, call, call.body.signal),
  })),
  bind(contract.resizeProcess, async (context, call) => ({
    process: await processes.resizeProcess(context, call, call.body),
  })),
  bind(contract.removeProcess, async (context, call) => {
    await processes.removeProcess(context, call);
    return {};
  }),
];
