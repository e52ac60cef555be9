// Commands on the wire.
import { execInSandbox } from '@berth/contract/exec.ts';
import * as exec from '../services/exec.ts';
import { bind } from './bind.ts';

export const execRoutes = [
  bind(
    execInSandbox,
    (context, { actor, sandbox, body, signal }) => exec.execInSandbox(context, actor, sandbox, body, signal),
    {
      keepsAlive: true,
    },
  ),
];
