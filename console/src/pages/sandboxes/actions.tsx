// Actions on a sandbox. Those that are not possible stay visible and say why.
import { Clock, Moon, Play, Scaling, SquareTerminal, Trash2, type LucideIcon } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { useNavigate } from 'react-router';
import { runAction } from '../../queries/sandbox-actions.ts';
import { PATHS } from '../../rules/paths.ts';
import type { SandboxAction } from '../../rules/sandbox-actions.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { en } from '../../text/en.ts';
import { DialogForm, TextField, useCall, useForm } from '../../ui/forms/index.ts';
import { Alert, Button, useDialogHost } from '../../ui/kit/index.ts';
import { LinkButton } from '../frame/link-button.tsx';
import { useCommands } from '../frame/page-commands.ts';
import { useSandboxInView } from './in-view.tsx';
import css from './actions.module.css';

const ICONS: Readonly<Record<SandboxAction, LucideIcon>> = {
  wake: Play,
  sleep: Moon,
  resize: Scaling,
  renew: Clock,
  destroy: Trash2,
};

/** @param typed text that is typed into the terminal, and not sent */
export function OpenTerminal({ typed }: { typed?: string }) {
  const { sandbox, whyNot } = useSandboxInView();
  return (
    <LinkButton
      icon={SquareTerminal}
      reason={whyNot('connect')}
      to={PATHS.sandboxTerminal(sandbox.id)}
      state={{ typed }}
    >
      {en.sandbox.tabs.terminal}
    </LinkButton>
  );
}

export function Actions() {
  const { sandbox, whyNot } = useSandboxInView();
  const navigate = useNavigate();
  const host = useDialogHost();
  const call = useCall();
  const [last, setLast] = useState<SandboxAction>('wake');
  const asleep = sandbox.status === 'stopped' || sandbox.status === 'failed';
  const shown: SandboxAction[] = [
    ...(asleep ? (['wake', 'sleep'] as const) : (['sleep', 'wake'] as const)),
    'resize',
    ...(sandbox.mode === 'ephemeral' ? (['renew'] as const) : []),
    'destroy',
  ];
  /** Dialogs of actions that ask for more before they run. */
  const dialogs: Partial<Record<SandboxAction, ReactNode>> = {
    resize: <ResizeDialog />,
    destroy: (
      <DialogForm
        danger
        words={en.sandbox.deleteWords(visibleText(sandbox.name))}
        send={() => runAction(sandbox.id, 'destroy')}
        onDone={() => void navigate(PATHS.sandboxes(sandbox.orgId))}
      />
    ),
  };
  const run = (action: SandboxAction): void => {
    setLast(action);
    call.run(() => runAction(sandbox.id, action));
  };
  useCommands([
    {
      name: en.sandbox.tabs.terminal,
      reason: whyNot('connect'),
      run: () => void navigate(PATHS.sandboxTerminal(sandbox.id)),
    },
    ...shown.map((action) => ({
      name: en.actions.name(action),
      reason: whyNot(action),
      run: () => (dialogs[action] === undefined ? run(action) : host.show(dialogs[action])),
    })),
  ]);
  return (
    <>
      <OpenTerminal />
      {shown.map((action, index) => (
        <Button
          key={action}
          kind={action === 'destroy' ? 'danger' : index === 0 && asleep ? 'primary' : 'plain'}
          icon={ICONS[action]}
          reason={whyNot(action)}
          busy={call.isPending && last === action}
          dialog={dialogs[action]}
          onClick={() => run(action)}
        >
          {en.actions.name(action)}
        </Button>
      ))}
      {call.error === null ? null : (
        <div className={css.failure}>
          <Alert title={en.actions.failed(last)} error={call.error} />
        </div>
      )}
    </>
  );
}

const text = en.sandbox;

function ResizeDialog() {
  const { sandbox } = useSandboxInView();
  const { allocated_vcpu: vcpu, allocated_memory_gb: memoryGb, allocated_disk_gb: diskGb } = sandbox;
  const form = useForm(sandbox.pendingAllocation ?? { vcpu, memoryGb, diskGb });
  const field = (name: keyof typeof form.values, label: string, min: number): ReactNode => (
    <TextField
      label={label}
      type="number"
      required
      min={min}
      step={1}
      value={form.values[name] === 0 ? '' : String(form.values[name])}
      onChange={(value) => form.set({ [name]: Number(value) })}
    />
  );
  return (
    <DialogForm words={text.resizeWords} form={form} send={() => runAction(sandbox.id, 'resize', form.values)}>
      <div className={css.sizes}>
        {field('vcpu', text.sizes.vcpu, 1)}
        {field('memoryGb', text.sizes.memory, 1)}
        {field('diskGb', text.sizes.disk, diskGb)}
      </div>
    </DialogForm>
  );
}
