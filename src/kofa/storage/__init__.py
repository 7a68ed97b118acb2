"""Model files and checkpoints: one file each, without code in it, written whole or not at all.

Each module imports only from those above it:

damage         the error for files that are not as kofa writes them
atomic         atomic writing, and locks on names
zip_directory  which members a zip has, and where
npy            arrays as members of a zip
manifest       the JSON of a file, read within limits of memory
archive        one file of a manifest and arrays
dtypes         types of labels, and dates, as JSON
fields         what the value of a field may be
schema         which objects a file may hold, and each of their fields
codec          objects as JSON and arrays, and back
validation     whether the parts of a model fit together
model_file     models in files
checkpoint     fits that are running, in files
row_file       tables that are written block by block
"""
