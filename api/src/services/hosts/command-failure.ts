// Maps refusals of a command or process to API errors. Messages are defined here, because the
// guest's text is untrusted.
import { PROCESS_LIMITS } from '@berth/protocol/guest-limits.ts';
import type { HostErrorCode } from '@berth/protocol/host.ts';
import { HostError } from '../../hosts/error.ts';
import { CodedError, invalidField } from '../../rules/coded-error.ts';
import { explainHostFailure } from './failure.ts';
import type { ServiceContext } from '../context/context.ts';

/** Fields that an error may name. */
export interface Named {
  cwd?: string | undefined;
  user?: string | undefined;
  argv?: readonly string[] | undefined;
  /** Part of the request that has them, by default the body. */
  part?: 'body' | 'query';
  /** Whether the request writes input of a process. */
  isInput?: boolean;
}

const REFUSALS: { readonly [code in HostErrorCode]?: (request: Named) => CodedError } = {
  command_cwd_invalid: ({ cwd = '/code', part = 'body' }) =>
    invalidField(`${part}.cwd`, `must be a directory that the user may enter; ${JSON.stringify(cwd)} is none`),
  command_user_unknown: ({ user = '', part = 'body' }) =>
    invalidField(`${part}.user`, `must be a user of the sandbox; /etc/passwd has no ${JSON.stringify(user)}`),
  command_program_invalid: ({ argv = [] }) =>
    invalidField(
      'body.argv',
      `must begin with a program that the user may run; ${JSON.stringify(argv[0])} is none. ` +
        'A shell line goes into body.command',
    ),
  exec_options_unsupported: () =>
    new CodedError(
      'exec_options_unsupported',
      'this sandbox is of a release without cwd, env, user, stdin and variables; write them into the command, as ' +
        'in `cd DIR && NAME=VALUE COMMAND`, unset its variables, or create another sandbox',
    ),
  process_not_found: processNotFound,
  process_over: ({ isInput = false }) =>
    new CodedError('process_over', isInput ? 'the process has ended, or reads no input' : 'the process has ended'),
  process_input_gap: () =>
    new CodedError('process_input_gap', 'body.offset is beyond the input so far; write what is missing first', {
      field: 'body.offset',
    }),
  process_input_full: () =>
    new CodedError('process_input_full', 'the process does not read its input; try again once it does', {
      retryAfterSeconds: 1,
    }),
  process_has_no_terminal: () => new CodedError('process_has_no_terminal', 'the process was started without tty'),
  process_limit: () =>
    new CodedError(
      'process_limit',
      `${PROCESS_LIMITS.live} processes run in this sandbox already; end or remove one first`,
      { retryAfterSeconds: 5 },
    ),
  guest_disk_full: () => new CodedError('guest_disk_full', "the sandbox's disk is full; the process was not started"),
  processes_unsupported: () =>
    new CodedError(
      'processes_unsupported',
      'this sandbox is of a release without processes; start programs in the background of a command, or create ' +
        'another sandbox',
    ),
};

export function processNotFound(): CodedError {
  return new CodedError('process_not_found', 'the sandbox has no such process; GET its processes for those it has');
}

/** Error for the guest's refusal of a command; undefined for other failures. */
export function commandRefusal(error: unknown, request: Named): CodedError | undefined {
  return error instanceof HostError ? REFUSALS[error.code as HostErrorCode]?.(request) : undefined;
}

export async function explainExecFailure(
  context: ServiceContext,
  sandboxId: string,
  request: Named,
  error: unknown,
): Promise<unknown> {
  return (
    commandRefusal(error, request) ??
    (await explainHostFailure(context, sandboxId, 'exec', error, '; the command may or may not have run'))
  );
}
