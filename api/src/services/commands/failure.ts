// Maps refusals of a command to API errors. Messages are defined here, because the guest's text is
// untrusted.
import type { HostErrorCode } from '@berth/protocol/host.ts';
import { HostError } from '../../hosts/error.ts';
import { CodedError, invalidField } from '../../rules/coded-error.ts';
import { explainHostFailure } from '../hosts/failure.ts';
import type { ServiceContext } from '../context/context.ts';

interface Place {
  cwd?: string | undefined;
  user?: string | undefined;
}

const REFUSALS: { readonly [code in HostErrorCode]?: (request: Place) => CodedError } = {
  command_cwd_invalid: ({ cwd = '/code' }) =>
    invalidField('body.cwd', `must be a directory that the user may enter; ${JSON.stringify(cwd)} is none`),
  command_user_unknown: ({ user = '' }) =>
    invalidField('body.user', `must be a user of the sandbox; /etc/passwd has no ${JSON.stringify(user)}`),
  exec_options_unsupported: () =>
    new CodedError(
      'exec_options_unsupported',
      'this sandbox is of a release without cwd, env, user and stdin; write them into the command, as in ' +
        '`cd DIR && NAME=VALUE COMMAND`, or create another sandbox',
    ),
};

export async function explainExecFailure(
  context: ServiceContext,
  sandboxId: string,
  request: Place,
  error: unknown,
): Promise<unknown> {
  const refusal = error instanceof HostError ? REFUSALS[error.code as HostErrorCode]?.(request) : undefined;
  return (
    refusal ?? (await explainHostFailure(context, sandboxId, 'exec', error, '; the command may or may not have run'))
  );
}
