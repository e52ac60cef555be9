// Form of a dialog: fields, failure of the last attempt, buttons. Without fields it asks for a
// decision. Closes when the call has succeeded.
import type { ReactNode } from 'react';
import { en } from '../../text/en.ts';
import { Button } from '../button.tsx';
import { useDialogHost } from '../dialog-host.tsx';
import { Dialog } from '../dialog.tsx';
import { useCall, type Call } from './form.ts';
import { Alert } from '../states.tsx';
import { toast } from '../toasts.tsx';
import css from '../dialog.module.css';

interface DialogFormProps<T> {
  /** `failed`: title of the failure. `done`: text of the toast. */
  words: { title: string; hint: string; submit: string; failed: string; done?: string };
  /** Needed by fields that show their faults. */
  form?: Call;
  /** Why it cannot be submitted; null: it can. */
  reason?: string | null;
  /** Whether the values can be sent; else a submit does nothing. */
  isValid?: boolean;
  danger?: boolean;
  send: () => Promise<T>;
  /** Called with the result after the dialog is closed. */
  onDone?: (result: T) => void;
  /** Called when the person leaves the dialog, if the page does not host it. */
  onClose?: () => void;
  children?: ReactNode;
}

export function DialogForm<T>(props: DialogFormProps<T>) {
  const { words, reason = null, isValid = true, danger = false, send, onDone, children } = props;
  const own = useCall();
  const call = props.form ?? own;
  const host = useDialogHost();
  const { onClose = host.close } = props;
  const submit = async (): Promise<T> => {
    const result = await send();
    if (words.done !== undefined) toast(words.done);
    return result;
  };
  const finish = (result: T): void => {
    host.close();
    onDone?.(result);
  };
  return (
    <Dialog alert={children === undefined} title={words.title} description={words.hint} onClose={onClose}>
      <form
        className={css.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (isValid) call.run(submit, finish);
        }}
      >
        {children}
        <Alert title={words.failed} error={call.error} />
        <div className={css.buttons}>
          <Button onClick={onClose}>{en.states.cancel}</Button>
          <Button type="submit" kind={danger ? 'danger' : 'primary'} reason={reason} busy={call.isPending}>
            {words.submit}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
