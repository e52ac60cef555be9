// A form that changes a name.
import { NAME_CHARACTERS } from '@berth/sdk/limits';
import { InlineForm, TextField, useForm } from '../../ui/forms/index.ts';
import { toast } from '../../ui/kit/index.ts';
import css from './me.module.css';

interface NameFormProps {
  text: { name: { label: string; hint: string }; save: string; saved: string; failed: string };
  name: string;
  /** Path of the name in the request. */
  sent: string;
  /** Why it cannot be changed; null: it can. */
  reason?: string | null;
  autoComplete?: string;
  send: (name: string) => Promise<unknown>;
}

export function NameForm({ text, name, sent, reason = null, autoComplete = 'off', send }: NameFormProps) {
  const form = useForm({ typed: null as string | null });
  const field = form.field('typed', sent);
  const value = field.value ?? name;
  const onDone = (): void => {
    toast(text.saved);
    form.set({ typed: null });
  };
  return (
    <InlineForm
      className={css.form}
      failed={text.failed}
      error={field.error === undefined ? form.error : null}
      submit={text.save}
      reason={reason}
      busy={form.isPending}
      onSubmit={() => form.run(() => send(value), onDone)}
    >
      <TextField
        {...field}
        {...text.name}
        autoComplete={autoComplete}
        required
        readOnly={reason !== null}
        maxLength={NAME_CHARACTERS}
        value={value}
      />
    </InlineForm>
  );
}
