//! What happened and what to do about it, in Chinese, for every code an error can have: the message itself names tables,
//! files and numbers and comes from below in English.

use crate::error::{Error, ErrorKind};

/// The advice for an error: by its code, else by its kind.
pub fn advice(error: &Error) -> &'static str {
    let code = error.code();
    of_statement(code)
        .or_else(|| of_time_travel(code))
        .or_else(|| of_table(code))
        .or_else(|| of_storage(code))
        .or_else(|| of_data(code))
        .or_else(|| of_source(code))
        .or_else(|| of_program(code))
        .unwrap_or_else(|| of_kind(error.kind()))
}

/// What is wrong with a statement, and limits it met.
fn of_statement(code: &str) -> Option<&'static str> {
    Some(match code {
        "Syntax" => "语法错误：^ 指出位置；\\? sql 列出时间旅行的写法",
        "Incomplete" => "语句没有写完：引号、括号或注释没有闭合",
        "Plan" => "语句无法规划：核对表名、列名、函数名，以及各处的类型和参数个数",
        "Execution" => "执行中出错：多为数据与表达式不符（类型转换、除以零、溢出），按错误里的值改写语句",
        "NotImplemented" => "还不支持这种写法：换一种等价的写法",
        "ColumnNotFound" => "没有这一列：用 \\d 表名 查看列名；大写或中文列名要加双引号；旧快照可能还没有这一列",
        "DuplicateName" => {
            "名字重复：给每个表起一个别名，例如 FROM t a, t VERSION AS OF 3 b；视图、临时表和 COPY 的每一列要有自己的名字：id AS a"
        }
        "AmbiguousColumn" => "不清楚是哪一列：写成 别名.列名；子查询里重名的列先各起一个名字",
        "MergedColumn" => "这种外连接里 USING 或 NATURAL 的列会变成 NULL：改写成 ON，再用 coalesce 取值",
        "CorrelatedSubquery" => {
            "相关子查询里的聚合、LIMIT 或窗口函数无法按外层的行计算：改成分组后再 JOIN，或写成 x = (SELECT count(*) …)"
        }
        "FunctionNotFound" => "没有这个函数：检查函数名",
        "BadArgument" => "表函数的参数不对：按提示里的写法核对参数名和取值",
        "Different" => "核对结果与预期不符：看 example 各行的主键和两边的值，再按类别查原因",
        "NoKey" => "没有可以对上两边行的主键：用 ON KEY (…) 写出两边都有的列",
        "ZoneNotStated" => "一边的时间带时区，另一边不带：用 ZONE '+08:00' 说明后者的时区",
        "BadMap" => "MAP 只能用于能写成文本的列：二进制和嵌套类型的列请在右边的查询里转换",
        "BadTolerance" => "容差写法不对：写 0.01，或 rel:0.001 表示比例；只有数值列可以有容差，主键列不可以",
        "BadHorizon" => "HORIZON 的值与列的类型不符：写成该列类型的值，例如 TIMESTAMP '2026-04-16 10:00:00'",
        "KeyNotUnique" => "同一主键的行太多，不能当主键：给 ON KEY 加上能区分行的列",
        "SourceOrder" => "来源没有按主键顺序给出行：改用查询或导出的文件来核对",
        "SumsNotClosed" => "核对的行数合不上，没有结论：这是程序的错误，请保留两边的数据并报告",
        "SumOverflow" => "某列的合计超过 76 位：用 EXCEPT 排除该列",
        "OtherComparison" => "进度文件属于另一次核对：核对同样的两边，或换一个文件",
        "StateNotKnown" => {
            "这一边再读一次不一定是同一状态，不能接着上次核对：去掉 PROGRESS，或改用快照上的表、只读这种表的查询、文件、能给出位点的源库"
        }
        "EmptySample" => "抽样里没有任何行，什么也没有核对：加大 SAMPLE 的比例，或核对全部",
        "NothingCompared" => {
            "没有任何行被核对，不能说一致：放宽 HORIZON 或 WHERE，或换一个有数据的快照；用 SELECT count(*) 看条件剩下多少行；本来就可能没有行的日子，写 ALLOW EMPTY（TOML：allow_empty = true）"
        }
        "FindingsIncomplete" => "接着上次核对时，之前的差异写不进 --out：删除进度文件后全部重来，或不用 --out",
        "FileFormat" => "只能核对 .parquet 和 .csv 文件：其他文件先 CREATE EXTERNAL TABLE，再用查询核对",
        "BadCheck" => "核对文件写法不对：按提示核对每个 [[check]] 的键",
        "NotConstant" => "这里要写常量：不能引用列，也不能用随行变化的表达式",
        "BadCondition" => "条件只能逐行判断真假：不能含聚合、窗口函数或子查询，并且要写成比较式",
        "SumOutOfRange" => "合计超出了结果类型的范围：先 CAST 成更宽的类型再求和",
        "NumberOutOfRange" => "计算结果超出了类型的范围：先 CAST 成更宽的类型（例如 DOUBLE）再计算",
        "OutOfRange" => "时间超出了可表示的范围：缩小时间，或降低时间精度",
        "ParameterMissing" => "参数没有值：用 --param 名字=值 或 \\param 名字 值 给出",
        "PreparedExists" => "同名的预备语句已经存在：先 DEALLOCATE，或换个名字",
        "PreparedNotFound" => "没有这个预备语句：先 PREPARE；预备语句只在本会话里有效",
        "TableExists" => "这个名字已被占用：给视图或临时表换个名字",
        "InvalidName" => "名字不合法：库名和表名里不能有 /",
        "StatementTooDeep" => "语句嵌套太深：把一长串值写成 IN (…) 或 VALUES，把长表达式拆开写",
        "TextAndNumber" => "字符串列不能和数字比较：给值加引号，或先 CAST 成数字",
        "ViewTooDeep" => "视图嵌套太深，或视图引用了自己：检查视图的定义",
        "ColumnsChanged" => "语句规划之后表结构变了：重新执行；在改表之前建的视图要重建",
        "UnknownFormat" => {
            "COPY 不会写这种格式：文件名以 .csv、.tsv、.json、.ndjson、.parquet 或 .arrow 结尾，或用 STORED AS 写明格式"
        }
        "SnapshotsLost" => {
            "LATEST 提示文件还在，快照文件却都没有了：恢复 snapshot 目录；若表确实没有快照，删除该提示文件"
        }
        "CountedSets" => {
            "不带 ALL 的 EXCEPT、INTERSECT 比较去重后的行；要比较次数，请两边都按全部列 GROUP BY 再 count(*)，或用 paimon_diff 按主键比较"
        }
        "UnknownTarget" => "COPY 只能写到本机的文件：换一个本地路径",
        "Timeout" => "超时已取消：用 --timeout 或 \\timeout 放宽，或减少读取量",
        "ResourcesExhausted" => "内存不够：用 --memory 放宽，或加过滤条件",
        "TooManyFiles" | "TooManyBytes" => "超过读取上限，尚未读取任何数据：加分区或主键过滤，或放宽上限",
        "UnknownTimeZone" => "没有这个时区：例如 +08:00 或 Asia/Shanghai",
        _ => return None,
    })
}

/// What states of a table can be asked for, and changes between them.
fn of_time_travel(code: &str) -> Option<&'static str> {
    Some(match code {
        "CannotTravel" => "这里不能时间旅行：把子句写在数据表后面",
        "ConflictingSelectors" => "同一处给了两个版本：只留一个；要比较两个版本，就把表写两次并各起别名",
        "BadSelector" => "版本写法不对：快照写编号，标签写带引号的名字；\\? sql 列出写法",
        "UnknownClause" => "不认识表名后面的子句：\\? sql 列出时间旅行的写法；读变更用 paimon_changes 或 paimon_delta",
        "SnapshotNotFound" => "没有这个快照：用 \\ds 表名 查看保留的快照，用 \\dtag 表名 查看标签",
        "NotCommitted" => "已证明没有落地：可以用同一提交者和标识重新提交",
        "Superseded" => "该提交者已提交更高的标识：现在再提交会被当作已完成而过滤掉，要换新的标识",
        "CommitUnknown" => "历史已不完整，无法断定：用 --since 给出首次提交之前的快照，或查提交方的日志，不要直接重跑",
        "AnomaliesFound" => "历史中有错误级异常：D-1、D-4、D-7、D-18 表示提交身份已乱，先停写入，保留现场，不要清理",
        "JournalFailed" => "读取日志写不进或读不出：看错误中的文件；LAKEPIN_JOURNAL 可指定另一个文件，为空则不记录",
        "NoJournal" => "本会话没有读取日志：在 shell 中把 LAKEPIN_JOURNAL 设为文件；服务中设置 SessionConfig::journal",
        "GateTimeout" => "等待超时：看 \\commits 里谁提交到哪里；放宽 --timeout，或减少条件",
        "NoWatermark" => "表没有水位线：改用 ALIGN ON TIMESTAMP 或 ALIGN ON IDENTIFIER … USER …",
        "SnapshotExpired" => {
            "快照已过期，文件可能已被清理：换一个仍保留的快照，或读取持有它的标签；重要的快照请事先打标签"
        }
        "NoSnapshot" => "表还没有快照",
        "PinLost" => "固定的快照已被回滚或替换：用 \\pins 查看，再用 \\pin 重新固定",
        "NotPinned" => "这个表没有固定：用 \\pins 查看",
        "TagNotFound" => "没有这个标签：用 \\dtag 表名 查看标签",
        "BranchWithoutSchema" => "这个分支的目录里没有 schema：恢复它，或读别的分支",
        "BranchNotFound" => "没有这个分支：用 \\dbr 表名 查看分支",
        "CommitNotFound" => "没有找到这次提交：用 \\ds 表名 查看提交者和提交号",
        "TimestampTooEarly" => "早于最早保留的快照：换一个更晚的时间，或使用标签",
        "AmbiguousTimestamp" => "时间有歧义：裸数字要写成带引号的时间；夏令时重复的时刻要写明时区偏移",
        "NonexistentTimestamp" => "这个时刻在该时区不存在（时钟拨快跳过了它）：写明时区偏移，或换一个时刻",
        "BadTimestamp" | "InvalidTimestamp" => {
            "时间写法不对：例如 '2026-04-16 10:00:00' 或 '2026-04-16T10:00:00+08:00'"
        }
        "WatermarkNotReached" => "水位还没有到：稍后再试，或换一个更早的水位",
        "BadRange" | "ChangeRange" => "变更区间不对：先写较早的快照，并且两端都要已经存在；反方向的比较用 paimon_diff",
        "ChangelogNotFound" => {
            "这一段变更日志已过期，或从来没有写过：换一个仍保留的区间，或用 paimon_diff 比较两个快照"
        }
        "NoCommonType" => "两边这一列的类型没有共同的类型：用 columns => 只列出其他列，或用连接并自己转换类型",
        "NotComparable" => "两个表的主键不同，不能按主键比较：改用连接或 EXCEPT",
        "ColumnOfView" => {
            "表里已有同名的列（rowkind、_SEQUENCE_NUMBER 等），这个视图无法再加：直接读表，变化用 paimon_diff 查看"
        }
        "NoRowTracking" => "表没有开启行追踪（row-tracking.enabled），没有行号可读：去掉行号列",
        _ => return None,
    })
}

/// What tables, their options and schemas are, and what of them is not read.
fn of_table(code: &str) -> Option<&'static str> {
    Some(match code {
        "TableNotFound" => "没有这个表：用 \\dt 查看表名，或写 库名.表名",
        "DatabaseNotFound" => "没有这个库：用 \\l 查看库名",
        "CatalogNotFound" => "没有这个目录：写 库名.表名，或用 paimon.库名.表名",
        "SchemaNotFound" => {
            "没有这一版模式：用 \\schema 表名 查看各版；若是快照用到的模式文件丢失，请恢复该文件，或读其他快照"
        }
        "NoPrimaryKey" => "表没有可用的主键，这个操作需要主键",
        "NotPartitioned" => "表没有分区",
        "UnknownOption" | "InvalidOption" | "BadOption" => "选项不对：检查名字和取值",
        "UnsupportedOption" => "表用了本程序不支持的选项，为免读错已拒绝：错误里有选项和取值；必要时换支持它的引擎读取",
        "FixedOption" => "这个选项由表决定，查询里不能改：去掉它",
        "OptionColumnUnknown" => "表的选项引用了不存在的列（可能已改名或删除）：请表的维护者修正选项",
        "BranchSchemasDiffer" | "BranchSchemaDiffers" => {
            "两个分支的列不一致，不能互补读取：先统一列，或用 表名$branch_分支名 单独读取"
        }
        "BranchRulesDiffer" => "两个分支的合并规则不同，不能互补读取：用 表名$branch_分支名 单独读取",
        "KeyTypeChanged" | "PrimaryKeyChanged" => {
            "主键或主键类型改过，旧文件的顺序不再可靠，不能合并：读改动之前的快照，或重建表"
        }
        "ReadOnly" => "只读：这里不能写入仓库",
        "NotYet" => "这个功能以后才有",
        "NewerFormat" => "表的格式版本比本程序新：请升级",
        "ManifestVersion" => "元数据的格式版本太旧（0.4 之前写入）：需要重建表",
        "UnknownType" => "不认识这个列类型，可能由更新版本的程序写入：请升级，或读取没有这一列的表",
        "UnsupportedFileFormat" => "不支持这种数据文件格式：能读 Parquet、ORC、Avro；分区里若有其他格式，过滤掉再读",
        "UnsupportedParquet" | "UnsupportedOrc" | "UnsupportedAvro" => {
            "文件用了不支持的编码、压缩或类型：错误里有文件名；不选这一列，或请写入方重写该文件"
        }
        "ShreddedVariant" => "VARIANT 列以拆分形式存储，不能读：查询里不选这一列",
        "ColumnFile" => "这些列单独存放在别的文件里，不能读：只选需要的列，避开它们",
        "DataEvolution" => "有些行的列分散在几个文件里（data-evolution.enabled），不能读：读改写之前的快照",
        "ClusteredMerge" => "文件没有按主键排序（pk-clustering-override），不能合并：等 compaction 完成后再读",
        "UnsupportedCast" => "列的类型改过，旧文件里的值不能转成新类型：不选这一列，或读改类型之前的快照",
        "InvalidCastValue" => "列的类型改过，旧文件里有值转不成新类型：不选这一列，或读改类型之前的快照",
        "TimestampOutOfRange" => "时间超出纳秒精度的范围（1677 至 2262 年）：不选这一列，或把列改为 TIMESTAMP(6)",
        "UnexpectedFileType" => {
            "文件里的列类型与表不一致：有提示就按提示换一种方式读；否则读别的快照，或请写入方重写该文件"
        }
        "AggregateFunctionUnknown" | "AggregateFunctionUnsupported" => "不支持该列的聚合函数：查询里不选这一列",
        "AggregateType" => "聚合函数与列的类型不符：检查该列的聚合选项，或查询里不选这一列",
        "AggregateOverflow" => "合并时聚合结果超出了列的类型：加宽该列的类型，或查询里不选这一列",
        "DecimalBeyondPrecision" => "值的位数超出了 DECIMAL 的精度：加宽该列的类型，或读数值较小时的快照",
        "RetractUnsupported" => "合并引擎收到撤回行（-U 或 -D）却不能撤回：按提示在表上设置选项，或检查写入作业",
        "NestedKeyNull" => "嵌套更新的主键里有 NULL，不能合并：检查上游数据",
        _ => return None,
    })
}

/// What storage answers, and addresses of it.
fn of_storage(code: &str) -> Option<&'static str> {
    Some(match code {
        "WarehouseNotFound" | "NotAWarehouse" => "仓库路径不对：检查 -w 或 LAKEPIN_WAREHOUSE",
        "UnknownScheme" => "不支持这种地址：写本地路径、file:///路径 或 s3://桶/路径（也可用 s3a、oss、cos、obs）",
        "InvalidPath" => "路径写法不对：写本地路径、file:///路径 或 s3://桶/路径",
        "BucketNotFound" => "没有这个存储桶：检查桶名、endpoint 和区域",
        "PermissionDenied" => "没有权限：检查访问密钥和桶策略；本地文件则检查文件和上级目录的权限",
        "StorageOption" => "对象存储的选项不对：检查选项名；oss、cos、obs 还要给 s3.endpoint",
        "StorageUnsupported" => "存储不支持这个操作：检查存储的类型和版本",
        "Storage" | "StorageUnavailable" => "存储没有响应：稍后重试，或检查网络、存储服务和磁盘",
        "StoreUnknown" => "计划要读的存储没有登记：在执行的一方登记同一个仓库",
        "ComputationUnknown" => "计划要做的统计在执行的一方没有登记：用仓库的环境创建编解码器",
        "FileChanged" => "文件在读取中被改动：重新执行；若反复出现，检查是否有别的作业在改写这些文件",
        "FileNotFound" => "没有这个文件：检查路径",
        "NotAFile" => "应是文件的地方是一个目录：请恢复该文件",
        _ => return None,
    })
}

/// What is damaged in metadata and data files, and sums that do not add up.
fn of_data(code: &str) -> Option<&'static str> {
    Some(match code {
        "DataFileMissing" | "FileLost" => "数据文件丢失：结果不完整，没有返回；检查清理任务，或换一个仍保留的快照",
        "DataFileCorrupt" => "数据文件损坏：错误里有文件名，请修复或从备份恢复",
        "FileTooLarge" => "文件大得不正常，可能被别的内容替换：请恢复该文件",
        "CorruptManifest" | "ManifestIncomplete" => {
            "清单文件损坏或不完整：恢复错误里的文件，或换一个不用它的快照或标签"
        }
        "CorruptDeletionVector" | "DeletionVectorAmbiguous" => {
            "删除向量损坏或互相矛盾，为免读出已删除的行，没有返回结果：恢复索引文件，或换一个快照"
        }
        "CorruptFileIndex" | "FileIndexCorrupt" => {
            "文件索引损坏：恢复索引文件；或 SET 'paimon.库.表.file-index.read.enabled' = 'false' 后不用索引读取"
        }
        "CorruptRow" => "清单里的主键或分区值损坏：恢复错误里的文件，或换一个快照",
        "MalformedJson" => "元数据文件不是合法的 JSON，可能写了一半或被改动：恢复该文件，或换一个快照或标签",
        "MalformedType" => "模式文件里的类型写法不对：恢复该文件，或换一个快照",
        "PhysicalTypeMismatch" => "数据文件里的列类型与它自己的模式不符：恢复该文件，或换一个快照",
        "NullInNotNull" => "NOT NULL 的列里有 NULL：检查写入作业，或查询里不选这一列",
        "RunNotSorted" => "同一层的文件主键重叠或顺序不对，合并会出错，没有返回结果：恢复错误里的文件，或换一个快照",
        "RowIdsOverlap" => "两个文件的行号重叠，多半是清单重复：恢复清单，或换一个快照",
        "TypeMismatch" => "值与类型不符：核对条件和分区里的值",
        "PlanDamaged" => "传来的执行计划已损坏：两端用同一版本，重新生成计划",
        "AccountingViolation" => "行数核对不平：元数据与文件不一致，请保留现场",
        _ => return None,
    })
}

/// Databases that a table is compared with.
fn of_source(code: &str) -> Option<&'static str> {
    Some(match code {
        "SourceAddress" => {
            "源库地址不对：写成 mysql://用户@主机:端口/库 或 postgres://用户@主机:端口/库，选项写在 ? 后面"
        }
        "SourceUnavailable" => "连不上源库：检查主机、端口、网络和 TLS 设置（sslmode=）",
        "SourceLost" => "与源库的连接断了，读到的一致状态也随之失效：从头再比；新的读取是另一个状态",
        "SourceDenied" => "源库拒绝：检查用户名和密码；只需要 SELECT 权限",
        "SourceTimeout" => {
            "源库的语句超时、等锁超时或被终止：用 statement_timeout=、lock_timeout= 放宽，或用 chunk_rows= 减小每批行数"
        }
        "SourceStatement" => "源库不接受这条语句：查询和条件要用源库自己的 SQL 写",
        "SourceTableNotFound" => "源库里没有这个表，或该用户无权看到：检查库名、表名和大小写",
        "SourceColumnNotFound" => "源库的表里没有这一列：检查列名和大小写",
        "SourceKeyOrder" => "源库的排序规则不按字节：在地址后面写查询，FROM 'SELECT * FROM pay'，行就在本地排序",
        "SourceKeyValue" => "键值放不进源库的列类型：按源库列的类型给出键",
        "SourceValue" => {
            "源库的值超出了列类型能表示的范围（如 0000-00-00、infinity）：在源库的查询里 CAST 成文本，或排除该行"
        }
        "SourceBusy" => "这个源正被另一个读取整体流式读出：先结束它；有主键的表按批读取，不会互相占用",
        _ => return None,
    })
}

/// What is asked of the program itself.
fn of_program(code: &str) -> Option<&'static str> {
    Some(match code {
        "Usage" => "命令写法不对：\\? 命令 看写法，\\? 列出所有命令",
        "UnknownCommand" => "没有这个命令：\\? 列出所有命令",
        "UnknownVariable" => "没有这个变量：用 -v 名字=值 给出",
        "BadName" => "列名不能当变量名：用 AS 给它起一个由字母、数字和下划线组成的名字",
        "NoRow" => "查询没有返回行：\\gset 需要恰好一行",
        "TooManyRows" => "行数超过上限：加 WHERE 或 LIMIT，或者只要 count(*)",
        "NotOneValue" => "查询结果不是单个值：改成只返回一行一列",
        "NotReached" => "次数用完，条件仍未满足：检查上游作业，或增加次数、放宽间隔",
        "AssertionFailed" => "断言不成立",
        "Interrupted" => "已用 Ctrl-C 取消，结果不完整",
        "Output" | "OutputFile" => "无法写出结果：检查磁盘空间和权限",
        "OutputProgram" => "接收结果的程序没有启动，或异常退出：检查 | 后面的命令；结果可能不完整",
        "BrokenPipe" => "接收输出的一方已经关闭，其余结果没有写出",
        "Demo" => "演示仓库没有建成：检查磁盘空间和目录权限，或换个目录：lakepin demo 目录",
        "NotRegistered" => "仓库没有在这个会话里登记：先打开仓库",
        _ => return None,
    })
}

/// What to do about an error of a kind, when its code says no more.
fn of_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "请求不对：按错误信息修改后重试",
        ErrorKind::NotFound => "要找的东西不存在，或已经不在了：检查名字",
        ErrorKind::Conflict => "别人先改动了：重新读取后再试",
        ErrorKind::Unavailable => "资源暂时不可用：稍后重试；若一直如此，检查存储、网络和磁盘",
        ErrorKind::Corrupt => "元数据或数据文件损坏：恢复错误里的文件，或换一个不用它的快照或标签",
        ErrorKind::Unsupported => "本版本不支持：换一种写法，或请升级",
        ErrorKind::Exhausted => "达到上限，没有做完：放宽上限，或减少读取量",
        ErrorKind::Internal => "程序内部错误：换一种写法试试；请保留语句和 \\e 的输出以便排查",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::layers::shipped;

    /// Words in quotes that look like codes, in files that choose a code by computation.
    const NO_CODES: &[&str] =
        &["CsvOptions", "JsonOptions", "LocalFileSystem", "NoSuchBucket", "Parquet", "Unterminated"];

    /// `"CamelCase"` words of a text.
    fn quoted_names(text: &str) -> impl Iterator<Item = &str> {
        text.match_indices('"').filter_map(|(at, _)| {
            let word = text[at + 1..].split('"').next().unwrap_or_default();
            let is_name = word.starts_with(|c: char| c.is_ascii_uppercase())
                && word.chars().all(|c| c.is_ascii_alphabetic())
                && word.chars().any(|c| c.is_ascii_lowercase());
            is_name.then_some(word)
        })
    }

    /// Every code that an error can have, and a file that gives it.
    fn codes() -> BTreeMap<String, String> {
        let mut codes = BTreeMap::new();
        for (file, text) in shipped() {
            let mut computed = false;
            for (at, call) in text.match_indices("with_code(") {
                let argument = text[at + call.len()..].trim_start();
                match argument.strip_prefix('"').and_then(|rest| rest.split('"').next()) {
                    Some(code) => drop(codes.insert(code.to_string(), file.display().to_string())),
                    None => computed = true,
                }
            }
            if computed {
                let names = quoted_names(&text).filter(|name| !NO_CODES.contains(name));
                codes.extend(names.map(|name| (name.to_string(), file.display().to_string())));
            }
        }
        codes
    }

    #[test]
    fn every_code_has_advice_of_its_own() {
        let kinds =
            ["Invalid", "NotFound", "Conflict", "Unavailable", "Corrupt", "Unsupported", "Exhausted", "Internal"];
        let codes = codes();
        for known in ["TableNotFound", "BucketNotFound", "SnapshotExpired", "Plan", "Incomplete", "BrokenPipe"] {
            assert!(codes.contains_key(known), "the search no longer finds {known}");
        }
        let parts = [of_statement, of_time_travel, of_table, of_storage, of_data, of_source, of_program];
        let without: Vec<_> = codes
            .iter()
            .filter(|(code, _)| !kinds.contains(&code.as_str()))
            .filter(|(code, _)| parts.iter().filter_map(|part| part(code)).count() != 1)
            .collect();
        assert!(without.is_empty(), "none or several, or a word for NO_CODES: {without:?}");
    }

    #[test]
    fn no_advice_is_left_for_a_code_that_is_gone() {
        let codes = codes();
        let own = shipped().into_iter().find(|(file, _)| file.ends_with("language/advice.rs")).expect("it is there").1;
        let gone: Vec<&str> = quoted_names(&own).filter(|name| !codes.contains_key(*name)).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }

    #[test]
    fn an_unknown_code_is_advised_by_its_kind() {
        let error = Error::corrupt("x").with_code("NeverHeardOf");
        assert!(advice(&error).contains("恢复"));
        assert!(advice(&Error::unavailable("x")).contains("重试"));
    }
}
