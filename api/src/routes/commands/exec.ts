// Wire format of commands.
import { execInSandbox } from '@berth/contract/commands/exec.ts';
import * as exec from '../../services/commands/exec.ts';
import { bind } from '../../call/bind.ts';

export const execRoutes = [
  bind(execInSandbox, (context, { actor, sandbox, body, signal }) =>
    exec.execInSandbox(context, actor, sandbox, body, signal),
  ),
];
