// Dialogs of the file tab: create, rename or move, delete.
import type { api } from '@berth/sdk';
import { createFolder, deleteFile, moveFile, saveFile } from '../../queries/files.ts';
import { isName, join, parentOf } from '../../rules/files.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { filesText as text } from '../../text/files.ts';
import { DialogForm, TextField, useForm } from '../../ui/forms/index.ts';
import { useSandboxInView } from '../sandboxes/in-view.tsx';

interface CreateDialogProps {
  folder: string;
  kind: 'file' | 'folder';
  onCreated: (path: string) => void;
}

export function CreateDialog({ folder, kind, onCreated }: CreateDialogProps) {
  const { id } = useSandboxInView().sandbox;
  const form = useForm({ name: '' });
  const { name } = form.values;
  const path = join(folder, name);
  const send = async (): Promise<void> => {
    if (kind === 'file') await saveFile(id, path, '', 'absent');
    else await createFolder(id, path);
  };
  return (
    <DialogForm
      words={text.createWords(kind, visibleText(folder))}
      form={form}
      isValid={isName(name)}
      send={send}
      onDone={() => onCreated(path)}
    >
      <TextField label={text.name} required {...form.field('name')} />
    </DialogForm>
  );
}

interface EntryDialogProps {
  entry: api.FileEntry;
  /** Called with the path to show next. */
  onSelect: (path: string) => void;
}

export function RenameDialog({ entry, onSelect }: EntryDialogProps) {
  const { id } = useSandboxInView().sandbox;
  const form = useForm({ to: entry.path });
  return (
    <DialogForm
      words={text.renameWords(visibleText(entry.label))}
      form={form}
      send={() => moveFile(id, entry.path, form.values.to)}
      onDone={onSelect}
    >
      <TextField label={text.newPath} required {...form.field('to')} />
    </DialogForm>
  );
}

export function DeleteDialog({ entry, onSelect }: EntryDialogProps) {
  const { id } = useSandboxInView().sandbox;
  return (
    <DialogForm
      danger
      words={text.removeWords(visibleText(entry.label), entry.type === 'directory')}
      send={() => deleteFile(id, entry.path)}
      onDone={() => onSelect(parentOf(entry.path))}
    />
  );
}
