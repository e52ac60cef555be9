import { runAction } from '../../queries/sandbox-actions.ts';
import { en } from '../../text/en.ts';
import { CallButton } from '../../ui/forms/index.ts';
import { Notice } from '../../ui/kit/index.ts';
import { useSandboxInView } from './in-view.tsx';

/** Puts the sandbox in view to sleep, or wakes it. */
export function ActionButton({ action, onDone }: { action: 'sleep' | 'wake'; onDone?: () => void }) {
  const { sandbox, whyNot } = useSandboxInView();
  const reason = whyNot(action);
  return (
    <CallButton
      kind={reason === null ? 'primary' : 'plain'}
      reason={reason}
      failed={en.actions.failed(action)}
      run={() => runAction(sandbox.id, action)}
      onDone={onDone}
    >
      {en.actions.name(action)}
    </CallButton>
  );
}

/** Notice of a tab that needs an awake sandbox, with the button that wakes it. */
export function Asleep({ title, text }: { title: string; text: (status: string) => string }) {
  const { sandbox } = useSandboxInView();
  return (
    <Notice title={title} hint={text(en.status(sandbox.status).toLowerCase())}>
      <ActionButton action="wake" />
    </Notice>
  );
}
