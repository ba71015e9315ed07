% Octave's own `load` of HDF5, whose variables are datasets; attributes are not loaded.

1;

function text = quoted(value)
  value = regexprep(value, '([\\"])', '\\$1');
  value = regexprep(value, '\s+', ' ');
  text = ['"' value '"'];
end

% Octave reverses dimensions, so that values in its own order are in the order of C.
function walk(path, prefix, data)
  for [value, name] = data
    if isstruct(value)
      walk(path, [prefix name '/'], value);
      continue
    end
    if ischar(value) || iscellstr(value)
      facts = ['"text": ' quoted(strjoin(cellstr(value)', '|'))];
    else
      flat = double(value(:));
      facts = sprintf('"sum": %.17g, "weighted": %.17g', sum(flat), sum(flat .* (1:numel(flat))'));
    end
    printf('{"file": %s, "name": %s, %s}\n', quoted(path), quoted([prefix name]), facts);
  end
end

paths = argv();
if strcmp(paths{1}, '--version')
  disp(version());
  exit(0);
end
for i = 1:numel(paths)
  try
    walk(paths{i}, '', load('-hdf5', paths{i}));
  catch problem
    printf('{"file": %s, "name": "", "error": %s}\n', quoted(paths{i}), quoted(problem.message));
  end
  printf('{"file": %s, "end": true}\n', quoted(paths{i}));
  fflush(stdout);
end
