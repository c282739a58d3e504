CREATE TABLE HIP ("BeginNs" INTEGER, "EndNs" INTEGER, "pid" INTEGER, "tid" INTEGER, "Name" TEXT, "args" TEXT, "Index" INTEGER, "Data" TEXT,
    "__section" INTEGER, "__lane" INTEGER, "DurationNs" INTEGER);
INSERT INTO HIP VALUES (1000000, 1001000, 42, 43, 'hipLaunchKernel', '( kernel(scale(float*)) stream(0))', 1, '', 2, 43, 1000),
    (1005000, 1009000, 42, 43, 'hipMemcpy', '( sizeBytes(4096))', 2, '', 2, 43, 4000);
CREATE TABLE OPS ("BeginNs" INTEGER, "EndNs" INTEGER, "dev-id" INTEGER, "queue-id" INTEGER, "Name" TEXT, "pid" INTEGER, "tid" INTEGER,
    "roctx-range" TEXT, "stream-id" INTEGER, "Index" INTEGER, "Data" TEXT, "__section" INTEGER, "__lane" INTEGER, "DurationNs" INTEGER);
INSERT INTO OPS VALUES (1002500, 1004500, 0, 1, 'scale(float*)', 42, 43, 'step', 0, 1, '', 6, 0, 2000);
CREATE TABLE COPY ("BeginNs" INTEGER, "EndNs" INTEGER, "dev-id" INTEGER, "queue-id" INTEGER, "Name" TEXT, "pid" INTEGER, "tid" INTEGER,
    "roctx-range" TEXT, "stream-id" INTEGER, "Index" INTEGER, "Data" TEXT, "__section" INTEGER, "__lane" INTEGER, "DurationNs" INTEGER);
INSERT INTO COPY VALUES (1006000, 1008000, 0, 0, 'CopyDeviceToHost', 42, 43, 'CopyDeviceToHost', 0, 2, '', 1, 0, 2000);
CREATE TABLE KERN ("Index" INTEGER, "KernelName" TEXT);
